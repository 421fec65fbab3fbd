"""RECALL_UNAIDED: what the model knows by itself, as one more reference (CRAG's hybrid system, 4.4)."""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import line
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A question, and when it is asked."""

    question: str
    asked_at: str


class Recollection(Output):
    """Reasons first; `answer` counts only where `known` is true and the premise is not false."""

    premise: str = Field(default="", max_length=300)
    reason: str = Field(default="", max_length=600)
    false_premise: bool = False
    known: bool = True
    answer: str = Field(default="", max_length=300)


def moment(given: Asked) -> dict[str, str]:
    """The values of a prompt that has nothing else."""
    return {"asked_at": line(given.asked_at), "question": given.question}


RECALL_UNAIDED: Role[Asked, Recollection] = Role(
    name="recaller",
    prompt="recaller/recall",
    input=Asked,
    output=Recollection,
    render=moment,
    sampling=Sampling(max_tokens=512),
)
