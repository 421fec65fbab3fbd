"""SUMMARISE: the answer out of reasoning that is not in the form asked for (CRAG's hybrid system, 4.7)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Source, number
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class SummariseInput:
    """The question, and the one text to read."""

    question: str
    sources: tuple[Source, ...]


class Summary(Output):
    """A few words."""

    answer: str = Field(max_length=300)


SUMMARISE: Role[SummariseInput, Summary] = Role(
    name="summariser",
    prompt="summariser/summarise",
    input=SummariseInput,
    output=Summary,
    render=lambda given: {"sources": number(given.sources), "question": given.question},
    sampling=Sampling(max_tokens=160),
)
