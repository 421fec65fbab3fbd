"""Registry of the methods by name."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from langgraph.graph import START, StateGraph
from pydantic import ValidationError

from sleuth.graphs.baselines import closed_book, ircot, iter_retgen, plain_rag, self_ask
from sleuth.graphs.baselines import react as agent
from sleuth.graphs.chat import graph as chat
from sleuth.graphs.core.context import CitedSettings, MethodSettings
from sleuth.graphs.core.method import Method, describe_errors
from sleuth.graphs.evidence.check import add_evidence_check, choices
from sleuth.graphs.methods.auto import graph as auto
from sleuth.graphs.methods.crp_rag import graph as crp_rag
from sleuth.graphs.methods.hybrid_rag import graph as hybrid_rag
from sleuth.graphs.methods.par_rag import graph as par_rag
from sleuth.graphs.methods.ras import graph as ras
from sleuth.graphs.methods.reader import graph as reader
from sleuth.graphs.methods.retro_rag import graph as retro_rag
from sleuth.graphs.methods.search_trained import graph as search_trained
from sleuth.graphs.report import graph as report
from sleuth.graphs.survey import graph as survey
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.settings import Profile


def _checked(method: Method) -> Method:
    """Return a method with the node that checks its answers; the sub-runs of `auto` check theirs."""
    if method is auto.METHOD or not issubclass(method.settings, CitedSettings):
        return method
    return replace(method, graph=lambda: add_evidence_check(method.graph()))


METHODS: dict[str, Method] = {
    module.METHOD.name: _checked(module.METHOD)
    for module in (
        plain_rag,
        par_rag,
        crp_rag,
        retro_rag,
        ras,
        hybrid_rag,
        search_trained,
        auto,
        reader,
        closed_book,
        iter_retgen,
        self_ask,
        ircot,
        agent,
    )
}

CHAT = chat.METHOD
"""The chat runs like a method, but its input is messages, and its threads continue."""

SURVEY = survey.METHOD
"""The survey runs like a method, but it asks every document instead of searching."""

REPORT = report.METHOD
"""The report runs like a method, but others do its research, and its answer has sections."""

OTHERS = {each.name: each for each in (CHAT, SURVEY, REPORT)}
"""What runs besides the methods."""


def configure(kind: Method, values: Mapping[str, Any], profile: Profile) -> MethodSettings:
    """Return a method's settings from text or typed values; an explicit value applies in every profile.

    Settings that they contain for other methods are checked too.

    Raises:
        UsageError: an unknown key or a value out of range; the message names the nearest key or the range.
    """
    known = list(kind.settings.model_fields)
    for key in values:
        if key not in known:
            raise UnknownName(f"setting of {kind.name}", key, known, f"It has: {', '.join(known)}.")
    try:
        given = kind.settings.model_validate(dict(values))
    except ValidationError as error:
        raise UsageError(f"A setting of {kind.name} cannot be used: {describe_errors(error)}.") from None
    for name, chosen in given.nested().items():
        configure(runnable(name), chosen, profile)
    if profile == "default":
        return given
    explicit = {key: getattr(given, key) for key in given.model_fields_set}
    return given.as_in_paper().model_copy(update=explicit)


def without_replies(kind: Method) -> dict[str, Any]:
    """Return the settings of a run for which nobody can reply: it waits for nothing."""
    return dict.fromkeys(kind.settings.model_fields.keys() & {"ask_back", "approve", "approve_plan"}, False)


def runnable(name: str) -> Method:
    """Return the method of this name, the chat, the survey or the report."""
    return OTHERS.get(name) or method(name)


def method(name: str) -> Method:
    """Return the method of this name.

    Raises:
        UnknownName: the name is unknown; the message has the nearest name.
    """
    if name not in METHODS:
        raise UnknownName("method", name, list(METHODS), f"There are: {', '.join(METHODS)}.")
    return METHODS[name]


def arrows(graph: StateGraph[Any, Any, Any, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield every edge of a graph as start, arrow and end; the arrow is dotted if a router chooses it."""
    for node in [START, *graph.nodes]:
        yield from ((node, "-->", after) for before, after in sorted(graph.edges) if before == node)
        yield from ((node, "-.->", after) for after in choices(graph, node))
