"""RetroRAG's evidence: its form in the state, and the model calls that score it, infer from it and answer.

Inferences are notes under keys of their own, so that a fork into another method inherits them. Notes under other keys
were inherited from another run, and are kept. Each call has a default for a reply that cannot be parsed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.role import I, Role
from sleuth.agents.roles import inputs, judging, reasoning
from sleuth.graphs.core.answer import Citation, Note, Threshold
from sleuth.graphs.core.node import gather_by_key
from sleuth.graphs.core.state import PassageRef
from sleuth.graphs.evidence.citations import verify_quotes
from sleuth.graphs.evidence.outcomes import as_steps, make_note, yes_probability
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.graphs.evidence.text_spans import find_sentence
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.types import Passage

_INFERENCE = "inference "

UNDECIDED = 0.5
"""The score of evidence that cannot be scored; a test is passed only above it."""

PUBLISHED = Threshold(value=0.7, by="the paper's; another one was not fitted for the model")
"""The consistency above which an answer is final, for models without a fitted threshold."""


class EvidencePassage(TypedDict):
    """A passage of the source evidence: its place in the archive, the round that found it, and its latest score."""

    reference: PassageRef
    round: int
    score: float


class RemovedEvidence(TypedDict):
    """A passage's id or an inference that was removed from the evidence, with round and reason."""

    round: int
    what: str
    why: str


class InferenceScores(TypedDict):
    """The scores of a new inference: relevance and attribution, and as evidence if it passed both tests."""

    claim: str
    relevance: float
    attribution: float
    evidence: float | None


class AnswerAttempt(TypedDict):
    """An answer with its reasons, the second one to compare it with, and the measured consistency of the two.

    `declarative` is false if it states no answer: it is empty, evasive or a question.
    """

    answer: str
    reason: str
    second: str
    declarative: bool
    consistency: float | None
    citations: list[Citation]


Notes = Mapping[str, Note]


def inferences(notes: Notes) -> dict[str, Note]:
    """Return the notes that are inferences."""
    return {key: note for key, note in notes.items() if key.startswith(_INFERENCE)}


def inherited_notes(notes: Notes) -> dict[str, Note]:
    """Return the notes that are not inferences."""
    return {key: note for key, note in notes.items() if not key.startswith(_INFERENCE)}


def with_sources(inference: Note, passages: Iterable[Passage]) -> Note:
    """Return an inference with its passages, including those without a verified quote."""
    return inference | {"passages": list(dict.fromkeys(passage.id for passage in passages))}


def rank_passages(pieces: Mapping[str, EvidencePassage]) -> list[str]:
    """Return references of the source evidence, best first; the newest first if scores are equal."""
    return [each["reference"] for each in sorted(pieces.values(), key=lambda each: (-each["score"], -each["round"]))]


def highest_scores(scores: Mapping[str, float], most: int) -> list[str]:
    """Return the keys of the highest scores; the first ones if scores are equal."""
    return sorted(scores, key=lambda key: -scores[key])[:most]


def drop_lowest_ranked(
    round: int, gone: Mapping[str, str], scores: Mapping[str, float], query: str, most: int
) -> dict[str, RemovedEvidence]:
    """Describe the removal of evidence that others outscored for a query; without a query the newest is kept."""
    left = {}
    for key, what in gone.items():
        why = f"scored {scores[key]:.2f} for {query!r}: not among the best {most}" if key in scores and query else ""
        not_scored = f"not among the newest {most}" if key in scores else "evidence of earlier rounds is not kept"
        left[f"{round} {key}"] = RemovedEvidence(round=round, what=what, why=why or not_scored)
    return left


def best_attempt(attempts: Mapping[str, AnswerAttempt]) -> AnswerAttempt | None:
    """Return the most consistent answer so far that states something; the latest if several are equal."""
    stated = [
        attempt for _, attempt in sorted(attempts.items(), key=lambda each: -int(each[0])) if attempt["declarative"]
    ]
    return max(stated, key=lambda each: -1.0 if each["consistency"] is None else each["consistency"], default=None)


def supporting_notes(question: str, attempt: AnswerAttempt, notes: Notes) -> list[Note]:
    """Return the notes that an answer cites from: the inherited ones, and last its own, with its citations and those of
    the inferences that state it.
    """
    stating = [note for note in inferences(notes).values() if find_sentence(attempt["answer"], note["finding"])]
    quoted = [citation for note in stating for citation in note.get("citations", [])]
    own = attempt["citations"]
    citations = own + [citation for citation in quoted if citation not in own]
    return [*inherited_notes(notes).values(), make_note(question, attempt["answer"], citations)]


# Model calls


async def judge(model: ModelCaller, role: Role[I, str], request: I) -> float:
    """Return P(yes) / (P(yes) + P(no)) at the first token (equation 1); undecided if the reply cannot be parsed."""
    return await yes_probability(model, role, request, otherwise=UNDECIDED, loss="It counts as undecided.")


async def score_relevance(model: ModelCaller, query: str, pieces: Mapping[str, Source]) -> dict[str, float]:
    """Score the relevance of each piece of evidence to a query in parallel (equations 2 and 4)."""
    requests = {key: judging.EvidenceInput(query=query, sources=(piece,)) for key, piece in pieces.items()}
    return await gather_by_key({key: judge(model, judging.EVIDENCE, each) for key, each in requests.items()})


async def name_entities(model: ModelCaller, question: str) -> list[str]:
    """Return the key entities of the question, or the question itself if the reply cannot be parsed."""
    request = inputs.QuestionInput(question=question)
    itself = reasoning.Entities(entities=[question[:80]])
    loss = "The question is taken as its own entity."
    return list(dict.fromkeys((await model.ask_or(reasoning.ENTITIES, request, itself, loss)).entities))


async def infer(
    model: ModelCaller,
    request: reasoning.InferInput,
    passages: Sequence[Passage],
    *,
    round: int,
    earlier: Notes,
    all: bool,
) -> dict[str, Note]:
    """Return new inferences, each with the passages that it names.

    Without `all`, at most MAX_INFERENCES are asked for, and those without a shown passage are dropped.
    """
    none = reasoning.Inferences(inferences=[])
    role: Role[reasoning.InferInput, reasoning.Inferences] = reasoning.INFER_ALL if all else reasoning.INFER
    reply = await model.ask_or(role, request, none, f"Round {round} has no inferences.")
    heard = {comparison_key(note["finding"]) for note in earlier.values()}
    notes = {}
    for at, inference in enumerate(reply.inferences, start=1):
        resting = [passages[cited.source - 1] for cited in inference.citations if cited.source <= len(passages)]
        if not (resting or all):
            model.warn(f"an inference of round {round} names no passage that was shown: {inference.claim!r}")
        elif comparison_key(inference.claim) not in heard:
            heard.add(comparison_key(inference.claim))
            citations = verify_quotes(model, inference.claim, inference.citations, passages)
            note = make_note(inference.question, inference.claim, citations)
            notes[f"{_INFERENCE}{round}.{at}"] = with_sources(note, resting)
    return notes


async def score_inferences(
    model: ModelCaller, new: Notes, *, query: str, earlier: Notes, passages: Sequence[Passage]
) -> dict[str, InferenceScores]:
    """Score inferences for relevance to the query, given those known, and attribution to the passages (equation 3)."""
    steps, read = as_steps(earlier.values()), as_sources(passages)
    claims = {key: note["finding"] for key, note in new.items()}
    relevance = {key: judging.RelevanceInput(query=query, claim=claims[key], known=steps) for key in new}
    attribution = {key: judging.AttributionInput(claim=claims[key], sources=read) for key in new}
    relevant, attributed = await asyncio.gather(
        gather_by_key({key: judge(model, judging.RELEVANCE, each) for key, each in relevance.items()}),
        gather_by_key({key: judge(model, judging.ATTRIBUTION, each) for key, each in attribution.items()}),
    )
    return {
        key: InferenceScores(claim=claims[key], relevance=relevant[key], attribution=attributed[key], evidence=None)
        for key in new
    }


def passes(scores: InferenceScores) -> bool:
    """Return whether an inference passes both tests of equation 3."""
    return scores["relevance"] > UNDECIDED and scores["attribution"] > UNDECIDED
