"""Calls to a knowledge graph: each is validated, bounded in time and size, and recorded."""

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import ValidationError

from sleuth.tools.errors import SleuthError, UnknownName, UsageError
from sleuth.tools.sources.knowledge_graph.functions import Function

MAX_CALLS = 5
MAX_SECONDS = 10.0
MAX_CHARACTERS = 1000
"""Limit of one result, as in the paper (section 4.5)."""


class GraphUnavailable(SleuthError):
    """A knowledge graph did not answer."""


class KnowledgeGraph(Protocol):
    """A backend that answers some of the functions."""

    @property
    def functions(self) -> Sequence[Function]:
        """The functions that it answers."""
        ...

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the result of a validated call as plain JSON, None if it has none.

        Raises:
            GraphUnavailable: the graph did not answer.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Lookup:
    """A call with its result: the `text` within the size limit, or the `problem`."""

    call: str
    text: str = ""
    problem: str = ""


def validate_call(graph: KnowledgeGraph, name: str, arguments: dict[str, Any]) -> tuple[Function, dict[str, Any]]:
    """Return a call's function and its validated arguments.

    Raises:
        UnknownName: the graph has no such function; UsageError if the arguments do not fit it.
    """
    known = {function.name: function for function in graph.functions}
    if name not in known:
        raise UnknownName("function of the knowledge graph", name, list(known))
    try:
        given = known[name].arguments.model_validate(arguments)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg'].lower()}" for each in error.errors())
        raise UsageError(f"{name} cannot be called like this: {faults}.") from None
    return known[name], given.model_dump(exclude_none=True)


async def look_up(
    graph: KnowledgeGraph, calls: Iterable[tuple[str, dict[str, Any]]], *, seconds: float = MAX_SECONDS
) -> list[Lookup]:
    """Make calls concurrently, each once and at most `MAX_CALLS`; a failed call does not delay the others."""
    distinct = list({format_call(name, arguments): (name, arguments) for name, arguments in calls}.items())
    made = (_look_up(graph, call, name, arguments, seconds) for call, (name, arguments) in distinct[:MAX_CALLS])
    left = [Lookup(call=call, problem=f"only {MAX_CALLS} calls are made") for call, _ in distinct[MAX_CALLS:]]
    return [*await asyncio.gather(*made), *left]


async def _look_up(graph: KnowledgeGraph, call: str, name: str, arguments: dict[str, Any], seconds: float) -> Lookup:
    try:
        function, given = validate_call(graph, name, arguments)
        async with asyncio.timeout(seconds):
            result = await graph.answer(function, given)
    except SleuthError as error:
        return Lookup(call=call, problem=str(error))
    except TimeoutError:
        return Lookup(call=call, problem=f"no answer within {seconds:g} s")
    if result in (None, [], {}, ""):
        return Lookup(call=call, problem="nothing is known")
    text = json.dumps(result, ensure_ascii=False)
    return Lookup(call=call, text=text if len(text) <= MAX_CHARACTERS else f"{text[: MAX_CHARACTERS - 1]}…")


def format_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call on one line: how it is cited."""
    given = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(arguments.items()))
    return f"{name}({given})"
