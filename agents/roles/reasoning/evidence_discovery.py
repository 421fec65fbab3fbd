"""ENTITIES, INFER and REQUERY: what evidence is about, what follows from it, what is missing (RetroRAG, "ELLERY")."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from sleuth.agents.formatting import Evidence, Source, Step, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role

MAX_ENTITIES, MAX_INFERENCES = 6, 5
"""Guided decoding must come to an end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EntitiesInput:
    """The question."""

    question: str


class Entities(Output):
    """The people, places and things that the question turns on."""

    entities: list[Annotated[str, Field(min_length=1, max_length=80)]] = Field(min_length=1, max_length=MAX_ENTITIES)


@dataclass(frozen=True, kw_only=True, slots=True)
class InferInput:
    """The question, its key entities, and the source evidence, best first."""

    question: str
    entities: tuple[str, ...]
    sources: tuple[Source, ...]


class Inference(Output):
    """A statement that follows from the sources, the simple question that it answers, and where it comes from."""

    question: str = Field(min_length=1, max_length=240)
    claim: str = Field(min_length=1, max_length=240)
    citations: Evidence = Field(default_factory=list)


class Inferences(Output):
    """As many as the sources give."""

    inferences: list[Inference] = Field(max_length=MAX_INFERENCES)


@dataclass(frozen=True, kw_only=True, slots=True)
class RequeryInput:
    """The question, all that is known, and the reasons given with an answer that did not hold."""

    question: str
    reason: str
    sources: tuple[Source, ...]
    known: tuple[Step, ...]


class Requery(Output):
    """What to search for next."""

    query: str = Field(min_length=1, max_length=240)


ENTITIES: Role[EntitiesInput, Entities] = Role(
    name="detective",
    prompt="detective/entities",
    input=EntitiesInput,
    output=Entities,
    render=lambda given: {"question": given.question},
    sampling=Sampling(max_tokens=160),
)

INFER: Role[InferInput, Inferences] = Role(
    name="detective",
    prompt="detective/infer",
    input=InferInput,
    output=Inferences,
    render=lambda given: {
        "sources": number(given.sources),
        "entities": "; ".join(given.entities),
        "question": given.question,
    },
    sampling=Sampling(max_tokens=1024),
)

REQUERY: Role[RequeryInput, Requery] = Role(
    name="detective",
    prompt="detective/requery",
    input=RequeryInput,
    output=Requery,
    render=lambda given: {
        "sources": number(given.sources),
        "known": trajectory.render(given.known),
        "reason": given.reason or "(none given)",
        "question": given.question,
    },
    sampling=Sampling(max_tokens=160),
)
