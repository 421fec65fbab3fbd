"""REASON and MONITOR: an answer with its reasons, and a second, freer one to hold it against (RetroRAG, "Answerer").

RECALL and GUESS are the same without any evidence: what the ablation of all evidence asks.
"""

from dataclasses import dataclass

from pydantic import Field

from sleuth.agents.formatting import Quote, Source, Step, number
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Output, Role

MAX_QUOTES = 5
"""As many as pieces of source evidence in the paper."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReasonInput:
    """The question, the source evidence, best first, and the inferences kept so far."""

    question: str
    sources: tuple[Source, ...]
    known: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallInput:
    """The question alone."""

    question: str


class Reasoned(Output):
    """`reason` says how the evidence leads to the answer, or what it lacks; without an answer `answer` is empty."""

    reason: str = Field(default="", max_length=800)
    citations: list[Quote] = Field(default_factory=list, max_length=MAX_QUOTES)
    answer: str = Field(max_length=400)


class Recalled(Output):
    """The same where there is nothing to cite."""

    reason: str = Field(default="", max_length=800)
    answer: str = Field(max_length=400)


class Direct(Output):
    """An answer without reasons."""

    answer: str = Field(max_length=400)


def _evidence(given: ReasonInput) -> dict[str, str]:
    return {
        "sources": number(given.sources),
        "known": trajectory.render(given.known),
        "question": given.question,
    }


REASON: Role[ReasonInput, Reasoned] = Role(
    name="reasoner",
    prompt="reasoner/reason",
    input=ReasonInput,
    output=Reasoned,
    render=_evidence,
    sampling=Sampling(max_tokens=768, temperature=0.01),
)

MONITOR: Role[ReasonInput, Direct] = Role(
    name="reasoner",
    prompt="reasoner/monitor",
    input=ReasonInput,
    output=Direct,
    render=_evidence,
    sampling=Sampling(max_tokens=160, temperature=1.0),
)

RECALL: Role[RecallInput, Recalled] = Role(
    name="reasoner",
    prompt="reasoner/recall",
    input=RecallInput,
    output=Recalled,
    render=lambda given: {"question": given.question},
    sampling=Sampling(max_tokens=512, temperature=0.01),
)

GUESS: Role[RecallInput, Direct] = Role(
    name="reasoner",
    prompt="reasoner/guess",
    input=RecallInput,
    output=Direct,
    render=lambda given: {"question": given.question},
    sampling=Sampling(max_tokens=160, temperature=1.0),
)
