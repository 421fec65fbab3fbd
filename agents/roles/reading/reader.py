"""READ: one question answered from the passages found for it (plain RAG)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Quotes, Source, Step, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadInput:
    """The question, the passages, best first, and what earlier steps have found out already."""

    question: str
    sources: tuple[Source, ...]
    known: tuple[Step, ...] = ()


class Reading(Output):
    """`answerable`, said first, is false where the sources do not tell."""

    answerable: bool
    answer: str = Field(default="", max_length=400)
    citations: Quotes = Field(default=[])


READ: Role[ReadInput, Reading] = Role(
    name="reader",
    prompt="reader/read",
    input=ReadInput,
    output=Reading,
    render=lambda given: {
        "sources": number(given.sources),
        "known": trajectory.render(given.known),
        "question": given.question,
    },
    sampling=Sampling(max_tokens=512),
)
