"""DRAFT and CONCLUDE: the preliminary answer of one step (PAR-RAG, section 3.5)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Evidence, Source, Step, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class DraftInput:
    """A step's question and the passages found for it, best first."""

    question: str
    sources: tuple[Source, ...]


class Draft(Output):
    """An answer from the sources alone, the likeliest where they do not tell; at least one citation is asked for."""

    answer: str = Field(max_length=200, json_schema_extra={"minLength": 1})
    citations: Evidence = Field(default_factory=list)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConcludeInput:
    """A step's question that needs no search, and the steps before it."""

    question: str
    trajectory: tuple[Step, ...]


class Conclusion(Output):
    """What follows from the steps before."""

    answer: str = Field(max_length=200)


DRAFT: Role[DraftInput, Draft] = Role(
    name="drafter",
    prompt="drafter/draft",
    input=DraftInput,
    output=Draft,
    render=lambda given: {"sources": number(given.sources), "question": given.question},
    sampling=Sampling(max_tokens=512),
)

CONCLUDE: Role[ConcludeInput, Conclusion] = Role(
    name="drafter",
    prompt="drafter/conclude",
    input=ConcludeInput,
    output=Conclusion,
    render=lambda given: {"trajectory": trajectory.render(given.trajectory), "question": given.question},
    sampling=Sampling(max_tokens=256),
)
