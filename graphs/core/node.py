"""`@node`: how the nodes of the methods are written.

A node is a function of the state and one `Call`, which has the run's context, the method's settings and the model:

    @node
    async def answer(state: State, call: Call[Settings]) -> Update:
        call.require(1)
        reading = await call.model.ask(READ, ReadInput(question=state.question, sources=...))
        return {"verdict": ...}

The decorator adds the model calls and warnings of the node to its update, and turns a budget without room for the next
call into `{"halted": True}`.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar, cast, get_args, get_type_hints

from langgraph.runtime import Runtime

from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.role import I, O, Role
from sleuth.graphs.core.context import Budget, Context, MethodSettings
from sleuth.graphs.core.state import RunState, RunUpdate
from sleuth.tools.errors import BadReply

S = TypeVar("S", bound=MethodSettings)
StateT = TypeVar("StateT", bound=RunState)
StateT_contra = TypeVar("StateT_contra", bound=RunState, contravariant=True)
UpdateT = TypeVar("UpdateT", bound=RunUpdate)
UpdateT_co = TypeVar("UpdateT_co", bound=RunUpdate, covariant=True)


class OutOfBudget(Exception):
    """The budget has no room for the calls that a node needs; raised by `Call.require`, caught by `@node`."""


class Call(Generic[S]):
    """One execution of a node.

    Attributes:
        context: what the run needs and its state must not hold.
        settings: the settings of the method that is running.
    """

    def __init__(self, state: RunState, runtime: Runtime[Context], settings: S) -> None:
        self.context = runtime.context
        self.settings = settings
        self.runtime = runtime
        self._state = state
        self._spare, self._sharing = 0, 1
        self._model: ModelCaller | None = None

    @property
    def model(self) -> ModelCaller:
        """The model, with an account of the calls of this execution."""
        if self._model is None:
            self._model = desk(self._state, self.runtime, spare=self._spare, sharing=self._sharing)
            self._model.model = self.settings.model_for(self._model.model, self.context)
        return self._model

    @property
    def made(self) -> int:
        """How many model calls this execution has made."""
        return len(self._model.calls) if self._model else 0

    def share(self, *, spare: int = 0, sharing: int = 1) -> None:
        """Leave part of the budget's calls to others; to be called before the first use of `model`.

        Args:
            spare: calls that later nodes need.
            sharing: the number of nodes, this one included, that run in parallel and share the rest.
        """
        self._spare, self._sharing = spare, sharing

    def affords(self, calls: int = 1) -> bool:
        """Return whether the budget has room for this number of calls after those that were made."""
        return affordable(self._state, self.runtime, self.made + calls)

    def require(self, calls: int = 1) -> None:
        """End the node if the budget has no room for this number of further calls.

        Raises:
            OutOfBudget: always caught by `@node`, which then sets the state's `halted`.
        """
        if not self.affords(calls):
            raise OutOfBudget

    def account(self, update: UpdateT) -> UpdateT:
        """Return the update with the calls and warnings of the model, if it was used."""
        if self._model is None:
            return update
        given = cast(RunUpdate, update)
        calls = {**given.get("calls", {}), **self._model.calls}
        warnings = [*self._model.warnings, *given.get("warnings", [])]
        return cast(UpdateT, {**update, "calls": calls, "warnings": warnings})


class Node(Protocol[StateT_contra, UpdateT_co]):
    """A node as LangGraph calls it."""

    def __call__(self, state: StateT_contra, *, runtime: Runtime[Context]) -> Awaitable[UpdateT_co]:
        """Run the node."""
        ...


def node(function: Callable[[StateT, Call[S]], Awaitable[UpdateT]]) -> Node[StateT, UpdateT]:
    """Make a LangGraph node of a function of a state and a `Call`; its name, docstring and types are kept."""
    hints = get_type_hints(function)
    (kind,) = get_args(hints["call"])

    async def run(state: StateT, *, runtime: Runtime[Context]) -> UpdateT:
        settings = runtime.context.settings
        assert isinstance(settings, kind)
        call = Call(state, runtime, settings)
        try:
            update = await function(state, call)
        except OutOfBudget:
            update = cast(UpdateT, {"halted": True})
        return call.account(update)

    # Not functools.wraps: LangGraph would inspect the signature of the wrapped function.
    run.__name__ = run.__qualname__ = function.__name__
    run.__module__, run.__doc__ = function.__module__, function.__doc__
    run.__annotations__ = {"state": hints["state"], "runtime": Runtime[Context], "return": hints["return"]}
    return cast(Any, run)  # type: ignore[no-any-return]


def desk(state: RunState, runtime: Runtime[Context], *, spare: int = 0, sharing: int = 1) -> ModelCaller:
    """The model calls of one execution of a node: seeded by question and settings, never by the thread.

    Of the budget's calls `spare` are left alone, and nodes that run side by side share the rest.
    """
    context = runtime.context
    left = remaining(state, runtime).max_calls
    limit = None if left is None else (left - spare) // sharing
    seed = f"{state.question}\n{context.fingerprint()}"
    return ModelCaller(context.model, context.archive, seed=seed, limit=limit, token_stream=context.hearing)


async def ask_or(desk: ModelCaller, role: Role[I, O], given: I, otherwise: O, loss: str) -> O:
    """Asks; where no reply can be understood, goes on with `otherwise` and a warning that says what is lost."""
    try:
        return await desk.ask(role, given)
    except BadReply as error:
        desk.warn(f"{error} {loss}")
        return otherwise


def settings_of(runtime: Runtime[Context], kind: type[S]) -> S:
    """The settings of the method that is running."""
    settings = runtime.context.settings
    assert isinstance(settings, kind)
    return settings


def affordable(state: RunState, runtime: Runtime[Context], calls: int = 1) -> bool:
    """Whether the budget has room for so many further calls."""
    left = remaining(state, runtime)
    return (
        (left.max_calls is None or calls <= left.max_calls)
        and (left.max_tokens is None or left.max_tokens > 0)
        and (left.max_seconds is None or left.max_seconds > 0)
    )


def remaining(state: RunState, runtime: Runtime[Context]) -> Budget:
    """What is left of the budget; less than nothing where a limit was passed."""
    budget = runtime.context.budget
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in state.calls.values())
    seconds = time.monotonic() - runtime.context.started
    return Budget(
        max_calls=None if budget.max_calls is None else budget.max_calls - len(state.calls),
        max_tokens=None if budget.max_tokens is None else budget.max_tokens - tokens,
        max_seconds=None if budget.max_seconds is None else budget.max_seconds - seconds,
    )
