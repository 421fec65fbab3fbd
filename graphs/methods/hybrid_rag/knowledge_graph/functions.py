"""Functions of a knowledge graph: those of the CRAG benchmark's mock interface (Yang et al., 2024).

They are declared in `functions.toml`. Names and parameters are the benchmark's, so that they work with its server.
Each call is validated by a pydantic model, bounded in time and size, and recorded.
"""

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, create_model

from sleuth.graphs.core.context import KnowledgeGraph
from sleuth.tools.checked_data import read_toml
from sleuth.tools.errors import SleuthError, UnknownName

MAX_CALLS = 5
MAX_SECONDS = 10.0
MAX_CHARACTERS = 1000
"""Limit of one result, as in the paper (section 4.5)."""

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]

_TYPES: dict[str, Any] = {
    "text": Text,
    "texts": Annotated[list[Text], Field(min_length=1, max_length=10)],
    "number": Annotated[int, Field(ge=0, le=10**12)],
    "rank": Annotated[int, Field(ge=1, le=100)],
    "year": Annotated[int, Field(ge=1800, le=2200)],
    "year text": Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}$")],
    "day": Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}-\d{2}-\d{2}$")],
    "period": Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")],
    "chart value": Literal["rank_last_week", "weeks_in_chart", "top_position", "rank"],
}
"""Types of parameters."""


class Function(BaseModel, frozen=True, extra="forbid"):
    """One question that a graph answers.

    `path` is where the benchmark's server answers it; `parameters` has the type of each, with "?" if it is optional.
    """

    path: str
    line: str
    parameters: dict[str, str]

    @property
    def name(self) -> str:
        """The name, made of the path: `movie_get_movie_info` for `/movie/get_movie_info`."""
        return self.path[1:].replace("/", "_")

    @property
    def domain(self) -> str:
        """The domain that it belongs to, one of the benchmark's five."""
        return self.path.split("/")[1]

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model that arguments have to fit; nothing beyond it is allowed."""
        fields: dict[str, Any] = {
            name: (_TYPES[kind[:-1]] | None, None) if kind.endswith("?") else _TYPES[kind]
            for name, kind in self.parameters.items()
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid", frozen=True), **fields)

    def signature(self) -> str:
        """Return the function on one line, as models read it."""
        parameters = ", ".join(f"{name}{'?' if kind.endswith('?') else ''}" for name, kind in self.parameters.items())
        return f"{self.name}({parameters}): {self.line}"


@cache
def declared_functions() -> dict[str, Function]:
    """Return all functions by name."""
    file = Path(__file__).with_name("functions.toml")
    return {each.name: each for each in read_toml(file, dict[str, list[Function]])["function"]}


class GraphUnavailable(SleuthError):
    """A knowledge graph did not answer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Lookup:
    """A call with its result: the `text` within the size limit, or the `problem`."""

    call: str
    text: str = ""
    problem: str = ""


async def look_up(
    graph: KnowledgeGraph, calls: Iterable[tuple[str, dict[str, Any]]], *, seconds: float = MAX_SECONDS
) -> list[Lookup]:
    """Make calls concurrently, each once and at most `MAX_CALLS`; a failed call does not delay the others."""
    distinct = list({format_call(name, arguments): (name, arguments) for name, arguments in calls}.items())
    made = (_look_up(graph, call, name, arguments, seconds) for call, (name, arguments) in distinct[:MAX_CALLS])
    left = [Lookup(call=call, problem=f"only {MAX_CALLS} calls are made") for call, _ in distinct[MAX_CALLS:]]
    return [*await asyncio.gather(*made), *left]


async def _look_up(graph: KnowledgeGraph, call: str, name: str, arguments: dict[str, Any], seconds: float) -> Lookup:
    functions = {function.name: function for function in graph.functions}
    try:
        if name not in functions:
            raise UnknownName("function of the knowledge graph", name, list(functions))
        values = functions[name].arguments.model_validate(arguments).model_dump(exclude_none=True)
        async with asyncio.timeout(seconds):
            result = await graph.answer(functions[name], values)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg'].lower()}" for each in error.errors())
        return Lookup(call=call, problem=f"{name} cannot be called like this: {faults}.")
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
    written = ", ".join(f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in sorted(arguments.items()))
    return f"{name}({written})"
