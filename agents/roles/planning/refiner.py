"""REFINE: the next step's question, made unambiguous by the answers that it builds on (PAR-RAG, section 3.5)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Step
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class RefineInput:
    """The next question, the steps that it builds on, and the question that all steps serve."""

    question: str
    answers: tuple[Step, ...]
    original: str


class Refined(Output):
    """The question to ask instead."""

    question: str = Field(min_length=1, max_length=240)


REFINE: Role[RefineInput, Refined] = Role(
    name="refiner",
    prompt="refiner/refine",
    input=RefineInput,
    output=Refined,
    render=lambda given: {
        "original": given.original,
        "answers": trajectory.render(given.answers),
        "question": given.question,
    },
    sampling=Sampling(max_tokens=160),
)
