"""What a role is: a typed input, a prompt, and a typed output for one model call."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from sleuth.agents.model import Sampling

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
else:
    DataclassInstance = object

I = TypeVar("I", bound=DataclassInstance)  # noqa: E741 - input and output, as everywhere in this package
O = TypeVar("O", bound="BaseModel | str")  # noqa: E741


NAMES = (
    *("reader", "planner", "drafter", "refiner", "reviewer", "answerer"),
    *("expander", "fuser", "aggregator", "verifier", "integrator", "reasoner", "evaluator"),
    *("detective", "extractor", "judge", "classifier"),
    *("calculator", "recaller", "querier", "resolver", "summariser"),
    *("router", "rewriter", "host", "actor"),
)
"""The roles: keys of `settings.models`, beside "default"."""


class Output(BaseModel):
    """Base of all structured outputs: strict where a reply is guided, lenient where it is read."""

    model_config = ConfigDict(
        frozen=True,
        extra="ignore",
        json_schema_extra={"additionalProperties": False},
        json_schema_serialization_defaults_required=True,
    )


def written_by(label: str, written: Mapping[str, tuple[str, ...]]) -> Callable[[dict[str, Any]], None]:
    """Lets a guided reply write only what belongs to its label, in that order: a short verdict costs a few tokens.

    Fields that an output lacks are left out, so that an output and its base can share `written`.
    """

    def vary(schema: dict[str, Any]) -> None:
        fields = schema.pop("properties")
        schema.pop("required")
        schema["anyOf"] = [
            {
                "type": "object",
                "properties": {name: {"const": value} if name == label else fields[name] for name in names},
                "required": names,
                "additionalProperties": False,
            }
            for value, names in (
                (value, [name for name in names if name in fields]) for value, names in written.items()
            )
        ]

    return vary


@dataclass(frozen=True, kw_only=True, slots=True)
class Role(Generic[I, O]):
    """One kind of model call.

    `name` is the key in `settings.models`, `prompt` the file below `prompts/`, `render` gives the prompt's values.
    `output` is an `Output` (guided by its schema) or `str` (plain text, or one of `choices`).
    """

    name: str
    prompt: str
    input: type[I]
    output: type[O]
    render: Callable[[I], dict[str, str]]
    sampling: Sampling = field(default_factory=Sampling)
    choices: tuple[str, ...] | None = None

    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that guides the reply: every field is written, also those that have a default."""
        if not issubclass(self.output, BaseModel):
            return None
        return _schema(self.output)


@cache
def _schema(output: type[BaseModel]) -> dict[str, Any]:
    """Made once: it takes milliseconds, and every call asks for it."""
    schema: dict[str, Any] = _unannotated(output.model_json_schema(mode="serialization"))
    return schema


def _unannotated(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """The schema without words for human readers: a server that lacks guidance gets it in the prompt."""
    if isinstance(schema, list):
        return [_unannotated(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _unannotated(item) for name, item in value.items()}
        if key in ("properties", "$defs")
        else _unannotated(value)
        for key, value in schema.items()
        if key not in ("title", "description", "default")
    }
