"""Roles of the hybrid method: expressions, knowledge-graph queries, memory and references (CRAG's hybrid system)."""

from typing import Annotated

from pydantic import BeforeValidator, Field

from sleuth.agents.formatting import Line, Quote, References, escape_line
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role, render_fields
from sleuth.agents.roles.inputs import QuestionInput, SourcesInput


class Asked(QuestionInput):
    """A question, and when it is asked."""

    asked_at: Line


class ResolveInput(Asked):
    """A question with its references; the last ones are dropped where the context is small."""

    sources: References


# Memory (section 4.4)


class Recollection(Output):
    """Reasons first; `answer` counts only where `known` is true and the premise is not false."""

    premise: str = Field(default="", max_length=300)
    reason: str = Field(default="", max_length=600)
    false_premise: bool = False
    known: bool = True
    answer: str = Field(default="", max_length=300)


RECALL_UNAIDED = Role("recaller/recall", Asked, Recollection, Sampling(max_tokens=512))
"""Answer from the model's own memory."""

# Expressions (section 4.3)


class ExpressInput(ResolveInput):
    """A question with its references, and the functions that an expression may use."""

    functions: Annotated[tuple[str, ...], ", ".join]


class Expression(Output):
    """An expression; empty where nothing has to be calculated."""

    expression: str = Field(default="", max_length=300)


EXPRESS = Role("calculator/express", ExpressInput, Expression, Sampling(max_tokens=160, temperature=0.7))
"""Write an expression that helps to answer, from the numbers in the sources."""

# Knowledge-graph queries (section 4.5)

KINDS = ("company", "ticker", "film", "person", "musician", "band", "song", "team", "year", "day", "other")
"""What an entity can be."""

MAX_ENTITIES = 4
MAX_CALLS = 5
_MAX_ARGUMENTS = 3


class Entity(Output):
    """Something that the question names; an unknown kind counts as "other"."""

    name: str = Field(min_length=1, max_length=120)
    kind: str = Field(default="other", json_schema_extra={"enum": list(KINDS)})


class Entities(Output):
    """The entities, most important first."""

    entities: Annotated[list[Entity], Field(max_length=20, json_schema_extra={"maxItems": MAX_ENTITIES})]


NAME_ENTITIES = Role(
    "querier/entities",
    Asked,
    Entities,
    Sampling(max_tokens=256),
    render=lambda input: {**render_fields(input), "kinds": ", ".join(KINDS)},
)
"""Name the entities to look up."""


class ChooseInput(Asked):
    """A question, and the functions that the graph answers, a line each."""

    functions: Annotated[tuple[str, ...], lambda lines: "\n".join(map(escape_line, lines))]


class Argument(Output):
    """One argument of a call, as text: the function's own types parse it."""

    name: str = Field(max_length=40)
    value: str = Field(max_length=120)


def _listed(arguments: object) -> object:
    if isinstance(arguments, dict):
        return [{"name": name, "value": value} for name, value in arguments.items()]
    return arguments


class Call(Output):
    """A function by its name; the arguments may also be an object, as most models write calls."""

    function: str = Field(max_length=80)
    arguments: Annotated[list[Argument], BeforeValidator(_listed)] = Field(
        max_length=20, json_schema_extra={"maxItems": _MAX_ARGUMENTS}
    )


class Calls(Output):
    """The calls to make; none where no function helps."""

    calls: Annotated[list[Call], Field(max_length=20, json_schema_extra={"maxItems": MAX_CALLS})]


CHOOSE_CALLS = Role("querier/calls", ChooseInput, Calls, Sampling(max_tokens=512))
"""Choose the functions of the knowledge graph to call."""

# The answer from all references (section 4.6), in the stages in which the system was built


_GUIDED_QUOTES = 5

Quotes = Annotated[list[Quote], Field(default_factory=list, json_schema_extra={"maxItems": _GUIDED_QUOTES})]
"""Few quotes where a reply is guided; a longer list is accepted."""


class Resolved(Output):
    """An answer and its citations."""

    citations: Quotes
    answer: str = Field(max_length=300)


class Reasoned(Output):
    """An answer after an outline."""

    reason: str = Field(default="", max_length=800)
    able: str = Field(default="", max_length=300)
    citations: Quotes
    answer: str = Field(max_length=300)


class Doubted(Output):
    """An answer after an outline that begins with the question's premise."""

    premise: str = Field(default="", max_length=400)
    reason: str = Field(default="", max_length=800)
    able: str = Field(default="", max_length=300)
    citations: Quotes
    answer: str = Field(max_length=300)
    false_premise: bool = False


RESOLVE_PLAIN = Role("resolver/plain", ResolveInput, Resolved, Sampling(max_tokens=384))
"""Answer as every RAG baseline does."""

RESOLVE_CAREFUL = Role("resolver/careful", ResolveInput, Resolved, Sampling(max_tokens=384))
"""Answer, or admit that the references do not contain the answer."""

RESOLVE_BY_REASONING = Role("resolver/reason", ResolveInput, Reasoned, Sampling(max_tokens=768))
"""Answer after an outline."""

RESOLVE = Role("resolver/reason_and_doubt", ResolveInput, Doubted, Sampling(max_tokens=896))
"""Answer after an outline that also checks the question's premise."""

# A summary of unstructured reasoning (section 4.7)


class Summary(Output):
    """An answer of a few words."""

    answer: str = Field(max_length=300)


SUMMARISE = Role("summariser/summarise", SourcesInput, Summary, Sampling(max_tokens=160))
"""Extract the answer from reasoning that does not have the requested form."""
