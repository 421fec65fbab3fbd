"""EXPAND: one possible next step of a line of reasoning, drawn at random (CRP-RAG, section 3.2)."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import StringConstraints

from sleuth.agents.formatting import Step
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpandInput:
    """The question, what was known before, and the steps that lead to the place where the next one is wanted."""

    question: str
    steps: tuple[str, ...]
    known: tuple[Step, ...] = ()


StepText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


class NextStep(Output):
    """`final`: nothing comes after it."""

    step: StepText
    final: bool = False


EXPAND: Role[ExpandInput, NextStep] = Role(
    name="expander",
    prompt="expander/expand",
    input=ExpandInput,
    output=NextStep,
    render=lambda given: {
        "question": given.question,
        "known": trajectory.render(given.known),
        "steps": trajectory.listed(given.steps),
    },
    sampling=Sampling(max_tokens=160, temperature=0.8),
)
