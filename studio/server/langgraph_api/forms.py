"""Requests of LangGraph's clients. Unknown fields are ignored: newer clients send more than older ones."""

from collections.abc import Set
from typing import Annotated, Any, ClassVar, Literal

from fastapi import Request, Response
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.method import describe_errors
from sleuth.graphs.persistence.thread import NAME
from sleuth.studio.server.schemas.checked import CheckedRoute, Handler
from sleuth.studio.server.schemas.runs import Body, BudgetForm
from sleuth.tools.errors import UsageError


class JsonRoute(CheckedRoute):
    """Route that reads every body as JSON, as LangGraph Server does: proxies of pages send no content type."""

    def get_route_handler(self) -> Handler:
        """Return the handler of requests."""
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            others = [header for header in request.scope["headers"] if header[0] != b"content-type"]
            scope = {**request.scope, "headers": [*others, (b"content-type", b"application/json")]}
            return await handle(Request(scope, request.receive))

        return handle_json


_LIMITS = BudgetForm.model_fields.keys()
_INTERNAL = {"thread_id", "run_id", "checkpoint_ns", "assistant_id", "graph_id", "user_id"}
"""Keys of `configurable` that LangGraph's clients set by themselves."""

Mode = Literal["values", "updates", "messages-tuple", "custom"]


UNSUPPORTED = {
    *("webhook", "after_seconds", "interrupt_before", "interrupt_after", "update", "goto", "supersteps", "ttl"),
    *("select", "name", "ids", "values", "extract", "sort_by", "sort_order"),
}
"""Fields that LangGraph Server has and sleuth lacks."""


class LangGraphForm(Body):
    """A body of LangGraph's API; fields that are `unsupported` are refused."""

    unsupported: ClassVar[Set[str]] = UNSUPPORTED

    @model_validator(mode="before")
    @classmethod
    def _refuse(cls, body: Any) -> Any:  # noqa: ANN401 - JSON
        fields = body.items() if isinstance(body, dict) else ()
        if wrong := [name for name, value in fields if name in cls.unsupported and value is not None]:
            raise ValueError(f"sleuth does not support the field {wrong[0]}, leave it out")
        return body


class ListForm(LangGraphForm):
    """A part of a list."""

    limit: int = Field(default=10, ge=1, le=1000)
    offset: int = Field(default=0, ge=0)


class AssistantSearch(ListForm):
    """Conditions on assistants."""

    unsupported = UNSUPPORTED | {"metadata"}
    graph_id: str | None = None


class ThreadForm(LangGraphForm):
    """A thread without a run."""

    thread_id: str | None = Field(default=None, pattern=NAME)
    metadata: dict[str, Any] = Field(default_factory=dict)
    if_exists: Literal["raise", "do_nothing"] = "raise"


class ThreadPatch(LangGraphForm):
    """Metadata that is merged into that of a thread."""

    metadata: dict[str, Any] = Field(default_factory=dict)


class ThreadSearch(ListForm):
    """Conditions on threads."""

    metadata: dict[str, Any] | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None


class CheckpointForm(Body):
    """A place in a thread's history; sub-runs have separate threads, so there are no other namespaces."""

    checkpoint_id: str | None = None
    checkpoint_ns: Literal[""] = ""


class Configurable(Body):
    """The checkpoint of a run, keys of LangGraph's clients, and settings of older clients."""

    model_config = ConfigDict(extra="allow")
    checkpoint_id: str | None = None


class ConfigForm(Body):
    """A config of LangGraph."""

    configurable: Configurable | None = None


class BeforeForm(ConfigForm):
    """A checkpoint, by itself or in a config."""

    checkpoint_id: str | None = None


MetadataKey = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
"""A key of a checkpoint's metadata, as SQLite can search it."""


class HistoryForm(LangGraphForm):
    """Which states of a thread: those before a checkpoint, by default the latest."""

    limit: int = Field(default=10, ge=1, le=1000)
    before: str | BeforeForm | None = None
    checkpoint: CheckpointForm | None = None
    metadata: dict[MetadataKey, Any] | None = None

    @property
    def end(self) -> str:
        """The id of the checkpoint before which the states are; empty for all states."""
        if isinstance(self.before, BeforeForm):
            return (self.before.configurable or self.before).checkpoint_id or ""
        return self.before or ""


class PlaceForm(LangGraphForm):
    """A place in a thread's history, in either of two fields."""

    checkpoint: CheckpointForm | None = None
    checkpoint_id: str | None = None

    @property
    def place(self) -> str:
        """The id of the checkpoint; empty for the latest one."""
        return (self.checkpoint and self.checkpoint.checkpoint_id) or self.checkpoint_id or ""


class CommandForm(LangGraphForm):
    """A reply to an interrupt."""

    resume: Any = None


class AssistantRunForm(PlaceForm):
    """A run of an assistant, which starts from a checkpoint."""

    assistant_id: str
    input: dict[str, Any] | None = None
    command: CommandForm | None = None
    context: dict[str, Any] | None = None
    config: ConfigForm | None = None
    stream_mode: Annotated[set[Mode], BeforeValidator(lambda modes: [modes] if isinstance(modes, str) else modes)] = (
        Field(default={"values"})
    )
    on_disconnect: Literal["cancel", "continue"] = "continue"
    multitask_strategy: Literal["reject", "interrupt"] = "reject"
    if_not_exists: Literal["create", "reject"] = "reject"

    @property
    def configurable(self) -> Configurable:
        """`config.configurable`, which may be missing."""
        return (self.config and self.config.configurable) or Configurable()

    @property
    def is_reply(self) -> bool:
        """Return whether the run replies to an interrupt."""
        return self.command is not None and self.command.resume is not None

    def settings(self) -> dict[str, Any]:
        """Return the settings of the method: `context`, or `config.configurable` of older clients."""
        return {key: value for key, value in self._values().items() if key not in _LIMITS}

    def budget(self) -> Budget:
        """Return the budget in `context`.

        Raises:
            UsageError: a limit is out of range.
        """
        try:
            return BudgetForm(**{key: value for key, value in self._values().items() if key in _LIMITS}).budget()
        except ValidationError as error:
            raise UsageError(f"A limit in `context` cannot be used: {describe_errors(error)}.") from None

    def _values(self) -> dict[str, Any]:
        extra = self.configurable.model_extra or {}
        values = {key: value for key, value in extra.items() if key not in _INTERNAL and not key.startswith("__")}
        return {key: value for key, value in {**values, **(self.context or {})}.items() if value is not None}
