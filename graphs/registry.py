"""Registry of the methods by name. A method's module is imported when the method is first used.

A package adds methods by entry points, which all interfaces then offer:

    [project.entry-points."sleuth.methods"]
    best-passage = "my_package.best_passage:METHOD"
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from langgraph.graph import START, StateGraph
from pydantic import ValidationError

from sleuth.graphs.core.context import MethodSettings
from sleuth.graphs.core.method import CHAT, REPORT, SURVEY, Method, describe_errors
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.settings import Profile

GROUP = "sleuth.methods"
"""The group of the entry points of further methods."""


class Registry(Mapping[str, Method]):
    """Methods by name, in their order.

    Args:
        modules: the module of each method, below `sleuth.graphs`.
        group: the group of the entry points that add methods of other packages; none of them replaces a method.
    """

    def __init__(self, modules: Mapping[str, str], *, group: str = "") -> None:
        self._modules = {name: f"sleuth.graphs.{module}:METHOD" for name, module in modules.items()}
        self._group = group
        self._loaded: dict[str, Method] = {}

    @cached_property
    def _places(self) -> dict[str, str]:
        added = {entry.name: entry.value for entry in entry_points(group=self._group)} if self._group else {}
        return {**self._modules, **{name: added[name] for name in sorted(added) if name not in self._modules}}

    def __getitem__(self, name: str) -> Method:
        if name not in self._loaded:
            place = self._modules.get(name) or self._places[name]
            self._loaded[name] = _load(EntryPoint(name, place, self._group))
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._modules or name in self._places


def _load(entry: EntryPoint) -> Method:
    try:
        loaded = entry.load()
    except (ImportError, AttributeError) as error:
        raise UsageError(f"The method {entry.name!r} of {entry.module} cannot be loaded: {error}.") from error
    if not isinstance(loaded, Method):
        raise UsageError(f"The method {entry.name!r} is no sleuth.Method: {entry.value} is {type(loaded).__name__}.")
    return loaded


METHODS = Registry(
    {
        "plain-rag": "baselines.plain_rag",
        "par-rag": "methods.par_rag.graph",
        "crp-rag": "methods.crp_rag.graph",
        "retro-rag": "methods.retro_rag.graph",
        "ras": "methods.ras.graph",
        "hybrid-rag": "methods.hybrid_rag.graph",
        "search-trained": "methods.search_trained.graph",
        "auto": "methods.auto.graph",
        "reader": "methods.reader.graph",
        "closed-book": "baselines.closed_book",
        "iter-retgen": "baselines.iter_retgen",
        "self-ask": "baselines.self_ask",
        "ircot": "baselines.ircot",
        "agent": "baselines.react",
    },
    group=GROUP,
)

OTHERS = Registry({CHAT: "chat.graph", SURVEY: "survey.graph", REPORT: "report.graph"})
"""What runs besides the methods: a chat, which continues; a survey, which asks every document; and a report."""


def configure(kind: Method, values: Mapping[str, Any], profile: Profile) -> MethodSettings:
    """Return a method's settings from text or typed values; an explicit value applies in every profile.

    Settings that they contain for other methods are checked too.

    Raises:
        UsageError: an unknown key or a value out of range; the message names the nearest key or the range.
    """
    names = list(kind.settings.model_fields)
    values = {kind.settings.renamed.get(key, key): value for key, value in values.items()}
    for key in values:
        if key not in names:
            raise UnknownName(f"setting of {kind.name}", key, names, f"It has: {', '.join(names)}.")
    try:
        settings = kind.settings.model_validate(values)
    except ValidationError as error:
        raise UsageError(f"A setting of {kind.name} cannot be used: {describe_errors(error)}.") from None
    for name, chosen in settings.nested().items():
        configure(method(name), chosen, profile)
    if profile == "default":
        return settings
    explicit = {key: getattr(settings, key) for key in settings.model_fields_set}
    return settings.as_in_paper().model_copy(update=explicit)


def without_replies(kind: Method) -> dict[str, Any]:
    """Return the settings of a run for which nobody can reply: it waits for nothing."""
    return dict.fromkeys(kind.settings.model_fields.keys() & {"ask_back", "approve", "approve_plan"}, False)


def runnable(name: str) -> Method:
    """Return the method of this name, the chat, the survey or the report."""
    return OTHERS[name] if name in OTHERS else method(name)


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
        ends = (after for branch in graph.branches.get(node, {}).values() for after in (branch.ends or {}).values())
        yield from ((node, "-.->", after) for after in dict.fromkeys(ends))
