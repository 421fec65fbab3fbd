"""AGGREGATE: the passages found for one step become a summary of what they know about it (CRP-RAG, section 3.3)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Quotes, Source, number
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class AggregateInput:
    """A step and the passages found for it, best first."""

    step: str
    sources: tuple[Source, ...]


class Knowledge(Output):
    """Empty where the sources have nothing to say about the step."""

    knowledge: str = Field(default="", max_length=600)
    citations: Quotes = Field(default=[])


AGGREGATE: Role[AggregateInput, Knowledge] = Role(
    name="aggregator",
    prompt="aggregator/aggregate",
    input=AggregateInput,
    output=Knowledge,
    render=lambda given: {"sources": number(given.sources), "step": given.step},
    sampling=Sampling(max_tokens=640, temperature=0.1),
)
