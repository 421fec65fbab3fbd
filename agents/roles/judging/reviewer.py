"""REVIEW: a draft checked against evidence that was searched with it (PAR-RAG, section 3.6)."""

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sleuth.agents.formatting import Evidence, Source, Step, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role, written_by
from sleuth.agents.roles.planning import MAX_STEPS

Status = Literal["PASS", "REVISED", "UNCONFIDENT"]

_WRITTEN: dict[str, tuple[str, ...]] = {
    "PASS": ("status",),
    "REVISED": ("status", "answer", "citations"),
    "UNCONFIDENT": ("status", "question", "earlier_step"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewStepInput:
    """A step's question, its draft, and the fine evidence, best first."""

    question: str
    answer: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewInput(ReviewStepInput):
    """Also the steps before, any of which the reviewer may blame."""

    trajectory: tuple[Step, ...]


def looking_back(given: ReviewStepInput, trajectory: tuple[Step, ...]) -> ReviewInput:
    """The same review, with the steps before it."""
    return ReviewInput(question=given.question, answer=given.answer, sources=given.sources, trajectory=trajectory)


class StepReview(Output):
    """The verdict: PASS keeps the draft, REVISED has `answer` and `citations`, UNCONFIDENT a new `question`."""

    model_config = ConfigDict(json_schema_extra=written_by("status", _WRITTEN))

    status: Status
    answer: str = Field(default="", max_length=400)
    citations: Evidence = Field(default_factory=list)
    question: str = Field(default="", max_length=240)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.status == "REVISED" and not self.answer.strip():
            raise ValueError("REVISED needs the better answer in 'answer'")
        if self.status == "UNCONFIDENT" and not self.question.strip():
            raise ValueError("UNCONFIDENT needs the new question in 'question'")
        return self


class Review(StepReview):
    """`earlier_step` counts from 1: the step whose answer was wrong, if UNCONFIDENT is because of one."""

    earlier_step: int | None = Field(default=None, ge=1, le=MAX_STEPS)


def _evidence(given: ReviewStepInput) -> dict[str, str]:
    return {"sources": number(given.sources), "question": given.question, "answer": given.answer}


REVIEW: Role[ReviewInput, Review] = Role(
    name="reviewer",
    prompt="reviewer/review",
    input=ReviewInput,
    output=Review,
    render=lambda given: _evidence(given) | {"trajectory": trajectory.render(given.trajectory)},
    sampling=Sampling(max_tokens=512),
)

REVIEW_STEP: Role[ReviewStepInput, StepReview] = Role(
    name="reviewer",
    prompt="reviewer/review_step",
    input=ReviewStepInput,
    output=StepReview,
    render=_evidence,
    sampling=Sampling(max_tokens=512),
)
