"""NAME_ENTITIES and CHOOSE_CALLS: two ways from a question to a knowledge graph (CRAG's hybrid system, 4.5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, field_validator

from sleuth.agents.formatting import line
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.agents.roles.hybrid.memory_answerer import Asked, moment
from sleuth.tools.sources.knowledge_graph import FUNCTIONS, KINDS

MAX_ENTITIES = 4
MAX_CALLS = 5
_MAX_ARGUMENTS = 3


class Entity(Output):
    """Something that the question names; a kind that is none of KINDS is taken for "other"."""

    name: str = Field(min_length=1, max_length=120)
    kind: str = Field(default="other", json_schema_extra={"enum": list(KINDS)})


class Entities(Output):
    """The most important first."""

    entities: Annotated[list[Entity], Field(max_length=20, json_schema_extra={"maxItems": MAX_ENTITIES})]


NAME_ENTITIES: Role[Asked, Entities] = Role(
    name="querier",
    prompt="querier/entities",
    input=Asked,
    output=Entities,
    render=lambda given: {**moment(given), "kinds": ", ".join(KINDS)},
    sampling=Sampling(max_tokens=256),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChooseInput(Asked):
    """`functions` are those that the graph answers, a line each."""

    functions: tuple[str, ...]


class Argument(Output):
    """One argument of a call, as text: the function's own types read it."""

    name: str = Field(max_length=40)
    value: str = Field(max_length=120)

    @field_validator("value", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int | float) else value


class Call(Output):
    """A function by its name; arguments may also come as an object, as most models know calls."""

    function: str = Field(max_length=80, json_schema_extra={"enum": list(FUNCTIONS)})
    arguments: Annotated[list[Argument], Field(json_schema_extra={"maxItems": _MAX_ARGUMENTS})]

    @field_validator("arguments", mode="before")
    @classmethod
    def _listed(cls, arguments: object) -> object:
        if isinstance(arguments, Mapping):
            return [{"name": name, "value": value} for name, value in arguments.items()]
        return arguments


class Calls(Output):
    """None where no function helps."""

    calls: Annotated[list[Call], Field(max_length=20, json_schema_extra={"maxItems": MAX_CALLS})]

    @field_validator("calls", mode="before")
    @classmethod
    def _some(cls, calls: object) -> object:
        return [] if calls is None else calls


CHOOSE_CALLS: Role[ChooseInput, Calls] = Role(
    name="querier",
    prompt="querier/calls",
    input=ChooseInput,
    output=Calls,
    render=lambda given: {**moment(given), "functions": "\n".join(map(line, given.functions))},
    sampling=Sampling(max_tokens=512),
)
