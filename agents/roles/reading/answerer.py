"""The end of a run: ANSWER (PAR-RAG, section 3.5), ANSWER_FROM_FACTS and ANSWER_UNAIDED (RAS, section 3.3).

ANSWER_FROM_MEMORY is all that the closed-book baseline asks.
"""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Numbers, Step
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role
from sleuth.agents.roles.planning import Bare, SoFar, values


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


class Unaided(Output):
    """`answer` is the best one in any case; `known`, said last, is false where it is a guess."""

    answer: str = Field(default="", max_length=400)
    known: bool = True


class FromFacts(Output):
    """The same, from the facts with these numbers."""

    facts: Numbers = Field(default_factory=list)
    answer: str = Field(default="", max_length=400)
    known: bool = True


ANSWER_FROM_FACTS: Role[SoFar, FromFacts] = Role(
    name="answerer",
    prompt="answerer/from_facts",
    input=SoFar,
    output=FromFacts,
    render=values,
    sampling=Sampling(max_tokens=256),
)

ANSWER_UNAIDED: Role[Bare, Unaided] = Role(
    name="answerer",
    prompt="answerer/unaided",
    input=Bare,
    output=Unaided,
    render=lambda given: {"question": given.question},
    sampling=Sampling(max_tokens=256),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryInput:
    """The question, and what another run has handed over."""

    question: str
    known: tuple[Step, ...] = ()


ANSWER_FROM_MEMORY: Role[MemoryInput, Unaided] = Role(
    name="answerer",
    prompt="answerer/from_memory",
    input=MemoryInput,
    output=Unaided,
    render=lambda given: {"known": trajectory.render(given.known), "question": given.question},
    sampling=Sampling(max_tokens=256),
)
