"""Yes/no questions whose answers are read as probabilities off the first token.

Four are RetroRAG's (equations 1 to 4); SUPPORT is how `auto` checks an answer.

None is guided: a choice constraint would change the probabilities. None writes more than one token.
"""

from dataclasses import dataclass

from sleuth.agents.formatting import Source, Step, number, unfenced
from sleuth.agents.formatting import steps as trajectory
from sleuth.agents.model import Sampling
from sleuth.agents.role import Role

_ONE_TOKEN = Sampling(max_tokens=1, top_logprobs=20)


@dataclass(frozen=True, kw_only=True, slots=True)
class ConsistencyInput:
    """Two answers to one question, the second drawn more freely."""

    question: str
    answer: str
    second: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EvidenceInput:
    """One piece of evidence, a passage or an inference, and what it should help to answer."""

    query: str
    sources: tuple[Source, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class RelevanceInput:
    """An inference, what is known without it, and what it should help to answer."""

    query: str
    claim: str
    known: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class AttributionInput:
    """An inference and the passages in which it should be found."""

    claim: str
    sources: tuple[Source, ...]


CONSISTENCY: Role[ConsistencyInput, str] = Role(
    name="evaluator",
    prompt="evaluator/consistency",
    input=ConsistencyInput,
    output=str,
    render=lambda given: {"question": given.question, "answer": given.answer, "second": given.second},
    sampling=_ONE_TOKEN,
)

EVIDENCE: Role[EvidenceInput, str] = Role(
    name="evaluator",
    prompt="evaluator/evidence",
    input=EvidenceInput,
    output=str,
    render=lambda given: {"sources": number(given.sources), "query": given.query},
    sampling=_ONE_TOKEN,
)

RELEVANCE: Role[RelevanceInput, str] = Role(
    name="evaluator",
    prompt="evaluator/relevance",
    input=RelevanceInput,
    output=str,
    render=lambda given: {
        "known": trajectory.render(given.known),
        "claim": unfenced(given.claim),
        "query": given.query,
    },
    sampling=_ONE_TOKEN,
)

ATTRIBUTION: Role[AttributionInput, str] = Role(
    name="evaluator",
    prompt="evaluator/attribution",
    input=AttributionInput,
    output=str,
    render=lambda given: {"sources": number(given.sources), "claim": unfenced(given.claim)},
    sampling=_ONE_TOKEN,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SupportInput:
    """A question, an answer to it, and what the answer cites."""

    question: str
    answer: str
    sources: tuple[Source, ...]


SUPPORT: Role[SupportInput, str] = Role(
    name="evaluator",
    prompt="evaluator/support",
    input=SupportInput,
    output=str,
    render=lambda given: {
        "sources": number(given.sources),
        "question": given.question,
        "answer": unfenced(given.answer),
    },
    sampling=_ONE_TOKEN,
)
