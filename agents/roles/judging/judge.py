"""JUDGE: whether an answer means the same as one that is known to be right (the Acc-LM of CRP-RAG's evaluation)."""

from dataclasses import dataclass

from sleuth.agents.formatting import unfenced
from sleuth.agents.model import Sampling
from sleuth.agents.role import Role

CORRECT, INCORRECT = "correct", "incorrect"


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeInput:
    """A question, the answers that count as right, and what was answered: the judge sees nothing else."""

    question: str
    answers: tuple[str, ...]
    said: str


def _values(given: JudgeInput) -> dict[str, str]:
    right = "\n".join(f"- {answer}" for answer in given.answers)
    return {"question": given.question, "answers": right, "said": unfenced(given.said)}


JUDGE: Role[JudgeInput, str] = Role(
    name="judge",
    prompt="judge/judge",
    input=JudgeInput,
    output=str,
    render=_values,
    sampling=Sampling(max_tokens=8),
    choices=(CORRECT, INCORRECT),
)
