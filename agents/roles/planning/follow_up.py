"""FOLLOW_UP: "Are follow-up questions needed here?" – the next one, or the final answer (Self-Ask, section 3)."""

from dataclasses import dataclass
from typing import Literal, Self

from pydantic import ConfigDict, Field, model_validator

from sleuth.agents.formatting import Step
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role, written_by


@dataclass(frozen=True, kw_only=True, slots=True)
class FollowUpInput:
    """The question, and the follow-up questions so far with their intermediate answers."""

    question: str
    known: tuple[Step, ...]


class FollowUp(Output):
    """With "Yes" the next `question`, with "No" the final `answer`, empty where there is none."""

    model_config = ConfigDict(
        json_schema_extra=written_by("follow_up", {"Yes": ("follow_up", "question"), "No": ("follow_up", "answer")})
    )

    follow_up: Literal["Yes", "No"]
    question: str = Field(default="", max_length=240)
    answer: str = Field(default="", max_length=400)

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.follow_up == "Yes" and not self.question.strip():
            raise ValueError("'Yes' needs the follow-up question in 'question'")
        return self


FOLLOW_UP: Role[FollowUpInput, FollowUp] = Role(
    name="planner",
    prompt="planner/follow_up",
    input=FollowUpInput,
    output=FollowUp,
    render=lambda given: {"known": trajectory.render(given.known), "question": given.question},
    sampling=Sampling(max_tokens=256),
)
