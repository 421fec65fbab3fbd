"""THINK: the next sentence of a chain of thought (IRCoT, section 3).

Plain text, of which the first sentence counts: the paper cuts the model's chain off after it.
"""

from dataclasses import dataclass

from sleuth.agents.formatting import Source, Step, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Role


@dataclass(frozen=True, kw_only=True, slots=True)
class ThinkInput:
    """The question, the passages collected so far, what was handed over, and the sentences before."""

    question: str
    sources: tuple[Source, ...]
    known: tuple[Step, ...]
    thoughts: tuple[str, ...]


THINK: Role[ThinkInput, str] = Role(
    name="reasoner",
    prompt="reasoner/think",
    input=ThinkInput,
    output=str,
    render=lambda given: {
        "sources": number(given.sources),
        "known": trajectory.render(given.known),
        "question": given.question,
        "thoughts": trajectory.listed(given.thoughts),
    },
    sampling=Sampling(max_tokens=128),
)
