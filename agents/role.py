"""Roles: a prompt with a typed input and a typed output, for one kind of model call."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cache
from typing import Any, ClassVar, Generic, Self, TypeVar, dataclass_transform, get_type_hints

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from sleuth.agents.model import Sampling

I = TypeVar("I", bound="Input")  # noqa: E741 - input and output, as everywhere in this package
O = TypeVar("O", bound="BaseModel | str")  # noqa: E741


NAMES = (
    *("reader", "planner", "drafter", "refiner", "reviewer", "answerer"),
    *("expander", "fuser", "aggregator", "verifier", "integrator", "reasoner", "evaluator"),
    *("detective", "extractor", "judge", "classifier", "questioner"),
    *("calculator", "recaller", "querier", "resolver", "summariser"),
    *("router", "rewriter", "host", "actor", "searcher"),
)
"""The names of roles: the keys of `settings.models`, together with "default"."""


FOR_PEOPLE = frozenset(
    {"reader", "drafter", "reviewer", "answerer", "integrator", "reasoner", "resolver", "actor", "host"}
)
"""The roles whose replies people read: they are in the language of the question."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
@dataclass(frozen=True)
class Input:
    """Base of all inputs: a subclass is a frozen dataclass, and each field that is no string has its formatter."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


class Output(BaseModel):
    """Base of all structured outputs. A reply's values are converted to their types before they are validated."""

    model_config = ConfigDict(
        defer_build=True,  # seconds of start-up
        frozen=True,
        extra="ignore",
        json_schema_extra={"additionalProperties": False},
        json_schema_serialization_defaults_required=True,
    )


class LabeledOutput(Output):
    """Base of outputs with a label, which decides the fields that a guided reply writes, so a short verdict is cheap.

    Attributes:
        label: the field of the label.
        written: for each label the fields that are written, in this order. Fields that an output lacks are skipped, so
            an output and its base class can share them.
        needed: for some labels the field that may not be empty.
    """

    label: ClassVar[str]
    written: ClassVar[Mapping[str, tuple[str, ...]]]
    needed: ClassVar[Mapping[str, str]]

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler, /) -> dict[str, Any]:
        reference = handler(core_schema)
        schema = handler.resolve_ref_schema(reference)
        properties = schema.pop("properties")
        del schema["required"], schema["additionalProperties"]
        schema["anyOf"] = [
            {
                "type": "object",
                "properties": {name: {"const": value} if name == cls.label else properties[name] for name in names},
                "required": names,
                "additionalProperties": False,
            }
            for value, fields in cls.written.items()
            for names in [[name for name in fields if name in properties]]
        ]
        return reference

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        label = getattr(self, self.label)
        name = self.needed.get(label)
        value = getattr(self, name) if name else True
        if not (value.strip() if isinstance(value, str) else value):
            raise ValueError(f"{label!r} needs {name!r}")
        return self


def render_fields(input: Input) -> dict[str, str]:
    """Return an input's fields as texts. A field that is not a string is annotated with its formatter."""
    texts: dict[str, str] = {}
    for name, hint in get_type_hints(type(input), include_extras=True).items():
        write = getattr(hint, "__metadata__", (str,))[0]
        texts[name] = write(getattr(input, name))
    return texts


@dataclass(frozen=True, slots=True)
class Role(Generic[I, O]):
    """One kind of model call.

    Attributes:
        prompt: the file below `prompts/`; its folder is the role's name.
        input: an `Input`.
        output: an `Output` (guided by its schema) or `str` (plain text, or one of `choices`).
        sampling: the sampling parameters; the seed is set per call.
        choices: the only replies allowed.
        render: returns the values of the prompt.
        begun: returns the beginning of the reply, which the model continues; the reply is then taken verbatim.
    """

    prompt: str
    input: type[I]
    output: type[O]
    sampling: Sampling
    _: KW_ONLY
    choices: tuple[str, ...] | None = None
    render: Callable[[I], dict[str, str]] = render_fields
    begun: Callable[[I], str] | None = None

    @property
    def name(self) -> str:
        """The key in `settings.models` and in call records."""
        return self.prompt.partition("/")[0]

    def schema(self) -> dict[str, Any] | None:
        """Return the JSON schema that guides the reply; every field is required, also those with a default."""
        return _schema(self.output) if issubclass(self.output, BaseModel) else None


@cache
def _schema(output: type[BaseModel]) -> dict[str, Any]:
    """Return an output's schema, computed once: it takes milliseconds."""
    schema: dict[str, Any] = _without_notes(output.model_json_schema(mode="serialization"))
    return schema


def _without_notes(schema: Any) -> Any:  # noqa: ANN401 - JSON
    """Return the schema without titles and descriptions: a server that lacks guidance gets it in the prompt."""
    if isinstance(schema, list):
        return [_without_notes(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_notes(item) for name, item in value.items()}
        if key in ("properties", "$defs")
        else _without_notes(value)
        for key, value in schema.items()
        if key not in ("title", "description", "default")
    }
