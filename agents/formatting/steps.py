"""The steps answered so far, as every role that looks back sees them."""

from dataclasses import dataclass

from sleuth.agents.formatting.sources import unfenced


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
        f"{i}. Question: {line(step.question)}\n   Answer: {line(step.answer)}" for i, step in enumerate(steps, start=1)
    )


def listed(texts: tuple[str, ...]) -> str:
    """Texts numbered from 1, a line each; says so when there is none."""
    return "\n".join(f"{i}. {line(text)}" for i, text in enumerate(texts, start=1)) or "(nothing yet)"


def line(text: str) -> str:
    """A text as one line that opens and closes no fence."""
    return unfenced(" ".join(text.split()))
