"""`@node`: how the nodes of the methods are written.

A node is a function of the state and one `Call`, which has the run's context, the method's settings and the model:

    @node
    async def answer(state: State, call: Call[Settings]) -> Update:
        call.require(1)
        reading = await call.model.ask(READ, ReadInput(question=state.question, sources=...))
        return {"verdict": ...}

The decorator reads the passages of the state's references from the archive before the function runs, adds the searches,
model calls and warnings of the node to its update, and turns a budget without room for the next call into
`{"halted": True}`: the router behind the node leads a halted run to the last node. `@node_with` has options for nodes
that end the run or share the budget.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_type_hints

from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime

from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.graphs.core.answer import Note, make_verdict
from sleuth.graphs.core.context import Budget, Context, MethodSettings
from sleuth.graphs.core.passages import deserialize_passage, serialize_passage
from sleuth.graphs.core.state import PassageRef, Question, RunState, Update, contains, find_hashes
from sleuth.graphs.core.tracing import Untraced
from sleuth.tools.storage.archive import texts_of
from sleuth.tools.text.language import prepare_detection
from sleuth.tools.types import Passage

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S", bound=MethodSettings)
StateT = TypeVar("StateT", bound=RunState)


class OutOfBudget(Exception):
    """The budget has no room for the calls that a node needs; raised by `Call.require`, caught by `@node`."""


class Call(Generic[S]):
    """One execution of a node.

    Attributes:
        context: what the run needs and its state must not hold.
        settings: the settings of the method that is running.
        state: the state of the run, from which the budget is counted and the seed derived.
        records: archived passages by their references.
        searches: archive references of the searches of this execution.
    """

    def __init__(
        self, state: RunState, runtime: Runtime[Context], settings: S, *, reserved_calls: int = 0, sharing: int = 1
    ) -> None:
        self.context = runtime.context
        self.settings = settings
        self.runtime = runtime
        self.state = state
        self.searches: list[str] = []
        self.records: dict[str, str] = {}
        self._reserved_calls, self._sharing = reserved_calls, sharing
        self._model: ModelCaller | None = None

    @property
    def model(self) -> ModelCaller:
        """Return the model, with an account of the calls of this execution; seeded by question and settings, not by
        thread.
        """
        if self._model is None:
            context, seed = self.context, f"{self.state.question}\n{self.context.fingerprint()}"
            self._model = ModelCaller(
                self.settings.model_for(context.model, context),
                context.archive,
                seed=seed,
                limit=self.remaining().max_calls,
                streams=context.token_stream,
            )
        return self._model

    async def prepare(self, fields: Iterable[str]) -> None:
        """Read the passages of these fields, before the model calls, which are matched by their order after a crash."""
        references = find_hashes([getattr(self.state, field) for field in fields])
        self.records |= await self.context.archive.find(references)
        await prepare_detection(self.state.question)

    def passages(self, references: Iterable[str]) -> list[Passage]:
        """Return the passages of references in the state, as the run found them, or of this execution's `archive`."""
        return [deserialize_passage(record) for record in texts_of(references, self.records)]

    async def archive(self, passages: Iterable[Passage]) -> list[str]:
        """Archive passages as they are now, and return their references for the state."""
        records = [serialize_passage(passage) for passage in passages]
        references = await self.context.archive.keep(records)
        self.records.update(zip(references, records, strict=True))
        return references

    def remaining(self) -> Budget:
        """Return the part of the budget that this execution may spend; negative where a limit was passed.

        Reserved calls are left to later nodes, and nodes that run in parallel share the rest.
        """
        budget = self.context.budget
        calls, tokens = self.state.spending()
        seconds = time.monotonic() - self.context.started
        return Budget(
            max_calls=None
            if budget.max_calls is None
            else (budget.max_calls - calls - self._reserved_calls) // self._sharing,
            max_tokens=None if budget.max_tokens is None else (budget.max_tokens - tokens) // self._sharing,
            max_seconds=None if budget.max_seconds is None else budget.max_seconds - seconds,
        )

    def affords(self, calls: int = 1) -> bool:
        """Return whether the budget has room for this number of calls after those that were made."""
        left = self.remaining()
        spent = len(self._model.calls) if self._model else 0
        return (
            (left.max_calls is None or spent + calls <= left.max_calls)
            and (left.max_tokens is None or left.max_tokens > 0)
            and (left.max_seconds is None or left.max_seconds > 0)
        )

    def require(self, calls: int = 1) -> None:
        """End the node if the budget has no room for this number of further calls.

        Raises:
            OutOfBudget: always caught by `@node`, which then sets the state's `halted`.
        """
        if not self.affords(calls):
            raise OutOfBudget

    def account(self, update: Update, *, replaces_warnings: bool) -> Update:
        """Return the update with the searches, and with the calls and warnings of the model, if it was used."""
        if self.searches:
            update = {**update, "searches": self.searches}
        if self._model is None:
            return update
        calls = {**update.get("calls", {}), **self._model.calls}
        earlier = self.state.warnings if replaces_warnings else []
        warnings = [*earlier, *self._model.warnings, *update.get("warnings", [])]
        return {**update, "calls": calls, "warnings": warnings}


Function = Callable[[StateT, Call[S]], Awaitable[Update]]
Node = Callable[..., Awaitable[Update]]
"""A node as LangGraph calls it, with the state and the runtime."""


def node(function: Function[StateT, S]) -> Node:
    """Make a LangGraph node of a function of a state and a `Call`; its name, docstring and types are kept."""
    return node_with()(function)


def node_with(
    *,
    notes_at_halt: Callable[[Any], Iterable[Note]] | None = None,
    reserved_calls: int = 0,
    parallel_nodes: Callable[[Any], int] | None = None,
) -> Callable[[Function[StateT, S]], Node]:
    """Return `@node` for a node that ends the run, or that leaves part of the budget to other nodes.

    Args:
        notes_at_halt: the notes of a node that ends the run: if the budget is used up, here or before, the verdict is
            the finding of the last one.
        reserved_calls: model calls that later nodes need.
        parallel_nodes: the number of nodes, this one included, that run in parallel and share the other calls.
    """

    def decorate(function: Function[StateT, S]) -> Node:
        hints = get_type_hints(function)
        (kind,) = get_args(hints["call"])
        types = get_type_hints(hints["state"], include_extras=True)
        with_passages = [name for name, hint in types.items() if contains(hint, PassageRef)]
        # A field without a reducer is replaced: a chat's warnings are those of its latest turn.
        replaces_warnings = types["warnings"] == list[str]

        async def run(state: StateT, *, runtime: Runtime[Context]) -> Update:
            settings = runtime.context.settings
            assert isinstance(settings, kind)
            stored: Any = state
            if isinstance(stored, dict):  # of a `Send`, which LangGraph passes on as it is stored
                state = hints["state"](**stored)
            sharing = parallel_nodes(state) if parallel_nodes else 1
            call = Call(state, runtime, settings, reserved_calls=reserved_calls, sharing=sharing)
            await call.prepare(with_passages)
            try:
                if notes_at_halt and state.halted:
                    raise OutOfBudget
                update = await function(state, call)
            except OutOfBudget:
                update = {"halted": True}
                if notes_at_halt:
                    notes = [*notes_at_halt(state)]
                    update = {"verdict": make_verdict("out_of_budget", notes[-1]["finding"] if notes else "", notes)}
            assert not (unknown := update.keys() - types.keys()), (
                f"{function.__name__} changes unknown fields: {unknown}"
            )
            return call.account(update, replaces_warnings=replaces_warnings)

        # Not functools.wraps: LangGraph would inspect the signature of the wrapped function.
        run.__name__ = run.__qualname__ = function.__name__
        run.__module__, run.__doc__ = function.__module__, function.__doc__
        run.__annotations__ = {"state": hints["state"], "runtime": Runtime[Context], "return": hints["return"]}
        return run

    return decorate


def nothing(state: RunState) -> Iterable[Note]:
    """Return no notes: a run whose budget is used up ends without an answer."""
    return ()


def known_notes(state: RunState) -> Iterable[Note]:
    """Return all notes: a run whose budget is used up ends with its last finding."""
    return state.notes.values()


def check_budget(state: Any) -> Literal["left", "spent"]:  # noqa: ANN401 - LangGraph would read a type as another schema
    """Router behind a node that may halt the run: `{"left": NEXT, "spent": LAST}`."""
    return "spent" if state.halted else "left"


class MethodGraph(StateGraph[StateT, Context, Any, StateT]):
    """State machine of a method. LangSmith's environment variables alone do not trace it, also if an application
    compiles it.
    """

    def compile(self, *arguments: Any, **options: Any) -> CompiledStateGraph[StateT, Context, Any, StateT]:  # noqa: ANN401 - those of the base
        """Compile as the base does."""
        return super().compile(*arguments, **options).with_config(callbacks=[Untraced()])


def new_graph(state: type[StateT], *nodes: Node, input_schema: type[Any] = Question) -> MethodGraph[StateT]:
    """Return a method's graph with these nodes, in their order, and no edges."""
    graph = MethodGraph(state, context_schema=Context, input_schema=input_schema)
    for function in nodes:
        graph.add_node(cast(Any, function))
    return graph


async def gather_by_key(asks: Mapping[K, Awaitable[V]]) -> dict[K, V]:
    """Return the results of awaitables that run in parallel, under their keys; they begin in the order of the keys."""
    return dict(zip(asks, await asyncio.gather(*asks.values()), strict=True))
