"""ANSWER: the question answered from the steps taken for it (PAR-RAG, section 3.5)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents import trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.agents.trajectory import Step


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerInput:
    """The original question and the whole trajectory."""

    question: str
    trajectory: tuple[Step, ...]


class Final(Output):
    """`known` is false, and `answer` empty, where the steps do not tell."""

    known: bool
    answer: str = Field(default="", max_length=400)


ANSWER: Role[AnswerInput, Final] = Role(
    name="answerer",
    prompt="answerer/answer",
    input=AnswerInput,
    output=Final,
    render=lambda given: {"trajectory": trajectory.render(given.trajectory), "question": given.question},
    sampling=Sampling(max_tokens=256),
)
