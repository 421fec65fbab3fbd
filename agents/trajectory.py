"""The steps answered so far, as every role that looks back sees them."""

from dataclasses import dataclass

from sleuth.agents.sources import unfenced


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One sub-question and what was found."""

    question: str
    answer: str


def render(steps: tuple[Step, ...]) -> str:
    """The steps numbered from 1, each on two lines; says so when there is none."""
    if not steps:
        return "(nothing yet)"
    return "\n".join(
        f"{i}. Question: {_line(step.question)}\n   Answer: {_line(step.answer)}"
        for i, step in enumerate(steps, start=1)
    )


def _line(text: str) -> str:
    return unfenced(" ".join(text.split()))
