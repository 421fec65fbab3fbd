"""Requests of LangGraph's clients. Unknown fields are ignored: newer clients send more than older ones."""

from collections.abc import Callable, Coroutine
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, Field, ValidationError, field_validator

from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.method import describe_errors
from sleuth.graphs.persistence import NAME
from sleuth.studio.server.schemas.runs import BudgetForm, Storable
from sleuth.tools.errors import UsageError


class JsonRoute(APIRoute):
    """Route that reads every body as JSON, as LangGraph Server does: proxies of pages send no content type."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of requests."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            others = [header for header in request.scope["headers"] if header[0] != b"content-type"]
            scope = {**request.scope, "headers": [*others, (b"content-type", b"application/json")]}
            return await handle(Request(scope, request.receive))

        return handle_json


_LIMITS = BudgetForm.model_fields.keys()
_INTERNAL = {"thread_id", "run_id", "checkpoint_id", "checkpoint_ns", "assistant_id", "graph_id", "user_id"}
"""Keys of `configurable` that LangGraph's clients set by themselves."""

MODES = ("values", "updates", "messages-tuple", "custom", "events")


def _refuse(value: object) -> None:
    """Raise ValueError for a field that LangGraph Server has and sleuth lacks."""
    if value is not None:
        raise ValueError("sleuth does not support this field, leave it out")


Unsupported = Annotated[None, BeforeValidator(_refuse)]


class ListForm(BaseModel):
    """A part of a list."""

    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)
    select: list[str] | None = None

    def selected(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a row that the client wants."""
        return {key: row[key] for key in self.select or row if key in row}


class AssistantSearch(ListForm):
    """Conditions on assistants."""

    graph_id: str | None = None
    name: str | None = None
    metadata: dict[str, Any] | None = None


class ThreadForm(BaseModel):
    """A thread without a run."""

    thread_id: str | None = Field(default=None, pattern=NAME)
    metadata: Storable = Field(default_factory=dict)
    if_exists: Literal["raise", "do_nothing"] = "raise"
    supersteps: Unsupported = None
    ttl: Unsupported = None


class ThreadPatch(BaseModel):
    """Metadata that is merged into that of a thread."""

    metadata: Storable = Field(default_factory=dict)


class ThreadSearch(ListForm):
    """Conditions on threads."""

    metadata: dict[str, Any] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None
    ids: list[str] | None = None
    values: Unsupported = None
    extract: Unsupported = None
    sort_by: Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None


class CheckpointForm(BaseModel):
    """A place in a thread's history."""

    checkpoint_id: str | None = None
    checkpoint_ns: str = ""

    @field_validator("checkpoint_ns")
    @classmethod
    def _has_no_subgraph(cls, value: str) -> str:
        if value:
            raise ValueError("sub-runs have threads of their own: there are no subgraph checkpoints")
        return value


class HistoryForm(BaseModel):
    """Which states of a thread."""

    limit: int = Field(default=10, ge=1, le=1000)
    before: str | CheckpointForm | dict[str, Any] | None = None
    checkpoint: CheckpointForm | None = None
    metadata: dict[str, Any] | None = None


class StateForm(BaseModel):
    """A checkpoint whose state is returned."""

    checkpoint: CheckpointForm


class StateUpdateForm(BaseModel):
    """Changed fields of a state; the change is a branch of its checkpoint."""

    values: Storable | None = None
    as_node: str | None = None
    checkpoint: CheckpointForm | None = None
    checkpoint_id: str | None = None


class CommandForm(BaseModel):
    """A reply to an interrupt."""

    resume: Any = None
    update: Unsupported = None
    goto: Unsupported = None


class AssistantRunForm(BaseModel):
    """A run of an assistant."""

    assistant_id: str
    input: dict[str, Any] | None = None
    command: CommandForm | None = None
    context: dict[str, Any] | None = None
    config: dict[str, Any] | None = None
    checkpoint: CheckpointForm | None = None
    checkpoint_id: str | None = None
    stream_mode: Literal[MODES] | list[Literal[MODES]] = "values"  # type: ignore[valid-type]
    on_disconnect: Literal["cancel", "continue"] = "continue"
    multitask_strategy: Literal["reject", "interrupt"] = "reject"
    if_not_exists: Literal["create", "reject"] = "reject"
    webhook: Unsupported = None
    after_seconds: Unsupported = None
    interrupt_before: Unsupported = None
    interrupt_after: Unsupported = None

    @property
    def modes(self) -> set[str]:
        """The stream modes."""
        return {self.stream_mode} if isinstance(self.stream_mode, str) else set(self.stream_mode)

    @property
    def place(self) -> str:
        """The checkpoint to start from; empty for the latest one."""
        return (self.checkpoint and self.checkpoint.checkpoint_id) or self.checkpoint_id or ""

    @property
    def is_reply(self) -> bool:
        """Return whether the run replies to an interrupt."""
        return self.command is not None and "resume" in self.command.model_fields_set

    def settings(self) -> dict[str, Any]:
        """Return the settings of the method: `context`, or `config.configurable` of older clients."""
        return {key: value for key, value in self._given().items() if key not in _LIMITS}

    def budget(self) -> Budget:
        """Return the budget in `context`.

        Raises:
            UsageError: a limit is out of range.
        """
        try:
            return BudgetForm(**{key: value for key, value in self._given().items() if key in _LIMITS}).budget()
        except ValidationError as error:
            raise UsageError(f"A limit in `context` cannot be used: {describe_errors(error)}.") from None

    def _given(self) -> dict[str, Any]:
        configurable = (self.config or {}).get("configurable") or {}
        own = {key: value for key, value in configurable.items() if key not in _INTERNAL and not key.startswith("__")}
        return {key: value for key, value in {**own, **(self.context or {})}.items() if value is not None}
