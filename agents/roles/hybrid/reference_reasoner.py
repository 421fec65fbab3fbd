"""The answer from all references at once (CRAG's hybrid system, 4.6), in the steps in which the system was built.

RESOLVE_PLAIN is what every RAG baseline does; RESOLVE_CAREFUL may say that it does not know; RESOLVE_BY_REASONING
thinks along an outline; RESOLVE also asks whether the question rests on something false.
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from sleuth.agents.formatting import Quote, Source, line, listed
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class ResolveInput:
    """The question, when it is asked, and the references; those at the end give way where there is no room."""

    question: str
    asked_at: str
    sources: tuple[Source, ...]


_GUIDED_QUOTES = 5

Quotes = Annotated[list[Quote], Field(default_factory=list, json_schema_extra={"maxItems": _GUIDED_QUOTES})]
"""Few where a reply is guided; more are no reason not to read it."""


class Resolved(Output):
    """An answer and where it stands."""

    citations: Quotes
    answer: str = Field(max_length=300)


class Reasoned(Output):
    """The same behind an outline."""

    reason: str = Field(default="", max_length=800)
    able: str = Field(default="", max_length=300)
    citations: Quotes
    answer: str = Field(max_length=300)


class Doubted(Output):
    """The same behind an outline that begins with the question's premise."""

    premise: str = Field(default="", max_length=400)
    reason: str = Field(default="", max_length=800)
    able: str = Field(default="", max_length=300)
    citations: Quotes
    answer: str = Field(max_length=300)
    false_premise: bool = False


def _values(given: ResolveInput) -> dict[str, str]:
    return {"sources": listed(given.sources), "asked_at": line(given.asked_at), "question": given.question}


RESOLVE_PLAIN: Role[ResolveInput, Resolved] = Role(
    name="resolver",
    prompt="resolver/plain",
    input=ResolveInput,
    output=Resolved,
    render=_values,
    sampling=Sampling(max_tokens=384),
)

RESOLVE_CAREFUL: Role[ResolveInput, Resolved] = Role(
    name="resolver",
    prompt="resolver/careful",
    input=ResolveInput,
    output=Resolved,
    render=_values,
    sampling=Sampling(max_tokens=384),
)

RESOLVE_BY_REASONING: Role[ResolveInput, Reasoned] = Role(
    name="resolver",
    prompt="resolver/reason",
    input=ResolveInput,
    output=Reasoned,
    render=_values,
    sampling=Sampling(max_tokens=768),
)

RESOLVE: Role[ResolveInput, Doubted] = Role(
    name="resolver",
    prompt="resolver/reason_and_doubt",
    input=ResolveInput,
    output=Doubted,
    render=_values,
    sampling=Sampling(max_tokens=896),
)
