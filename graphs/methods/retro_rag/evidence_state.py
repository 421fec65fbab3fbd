"""State of RetroRAG's evidence: passages, inferences, removed evidence with the reason, and attempted answers.

Inferences are notes under keys of their own, so that a fork into another method inherits them. Notes under other keys
were inherited from another run, and are kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from typing_extensions import TypedDict

from sleuth.agents.formatting import Source
from sleuth.graphs.core import Citation, Note, Verdict
from sleuth.graphs.evidence import find_sentence, make_note, make_verdict
from sleuth.tools.types import Passage

_INFERENCE = "inference "


class EvidencePassage(TypedDict):
    """A passage of the source evidence: its place in the archive, the round that found it, and its latest score."""

    reference: str
    round: int
    score: float


class RemovedEvidence(TypedDict):
    """A passage's id or an inference that was removed from the evidence, with round and reason."""

    round: int
    what: str
    why: str


class AnswerAttempt(TypedDict):
    """An answer with its reasons, the second one to compare it with, and the measured consistency of the two."""

    answer: str
    reason: str
    second: str
    declarative: bool
    consistency: float | None
    citations: list[Citation]


Notes = Mapping[str, Note]


# Evidence


def inference_key(round: int, at: int) -> str:
    """Return a key that no other inference of the run has."""
    return f"{_INFERENCE}{round}.{at}"


def inferences(notes: Notes) -> dict[str, Note]:
    """Return the notes that are inferences."""
    return {key: found for key, found in notes.items() if key.startswith(_INFERENCE)}


def inherited_notes(notes: Notes) -> dict[str, Note]:
    """Return the notes that are not inferences."""
    return {key: found for key, found in notes.items() if not key.startswith(_INFERENCE)}


def as_source(inference: Note) -> Source:
    """Return an inference in the form of a source."""
    return Source(title="Inference", text=inference["finding"])


def with_sources(inference: Note, passages: Iterable[Passage]) -> Note:
    """Return an inference with its passages, including those without a verified quote."""
    return Note(**{**inference, "passages": list(dict.fromkeys(passage.id for passage in passages))})


def first_positions(passages: Sequence[Passage]) -> dict[str, int]:
    """Return the first position of each passage: one that is found again replaces its earlier copy."""
    places: dict[str, int] = {}
    for at, passage in enumerate(passages):
        places.setdefault(passage.id, at)
    return places


def unsupported(notes: Notes, passages: Iterable[Passage]) -> dict[str, Note]:
    """Return the inferences none of whose passages is left."""
    living = {passage.id for passage in passages}
    return {key: found for key, found in inferences(notes).items() if not living & set(found["passages"])}


def scored_passage(before: EvidencePassage | None, reference: str, score: float, round: int) -> EvidencePassage:
    """Return a kept or new passage of the evidence."""
    return EvidencePassage(reference=reference, round=before["round"] if before else round, score=score)


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


def remove_unsupported(round: int, orphans: Notes, kept: Notes, *, tested: bool) -> dict[str, RemovedEvidence]:
    """Describe the removal of unsupported inferences that were not kept."""
    outcome = "no other passage supports it" if tested else "it was not tested again"
    left = {}
    for key, found in orphans.items():
        if key not in kept:
            why = f"its passages have left ({', '.join(found['passages'])}): {outcome}"
            left[f"{round} {key}"] = RemovedEvidence(round=round, what=found["finding"], why=why)
    return left


def summarize_removed(update: Mapping[str, Any]) -> list[str]:
    """Return a line for each item that was removed from the evidence in the latest round of an update, and why."""
    removed = (update.get("departures") or {}).values()
    latest = max((each["round"] for each in removed), default=0)
    return [f"left in round {latest}: {each['what']}: {each['why']}" for each in removed if each["round"] == latest]


# Answers


def best_attempt(attempts: Mapping[str, AnswerAttempt]) -> AnswerAttempt | None:
    """Return the most consistent answer so far that states something; the latest if several are equal."""
    stated = [
        attempt for _, attempt in sorted(attempts.items(), key=lambda each: -int(each[0])) if attempt["declarative"]
    ]
    return max(stated, key=lambda each: -1.0 if each["consistency"] is None else each["consistency"], default=None)


def answer_note(question: str, attempt: AnswerAttempt, notes: Notes) -> Note:
    """Return an answer with its own citations and those of the inferences that state it."""
    stating = [found for found in inferences(notes).values() if find_sentence(attempt["answer"], found["finding"])]
    quoted = [citation for found in stating for citation in found.get("citations", [])]
    own = attempt["citations"]
    return make_note(question, attempt["answer"], own + [citation for citation in quoted if citation not in own])


def supporting_notes(notes: Notes, answer: Note) -> list[Note]:
    """Return the notes that an answer cites from: all inherited ones, and its own."""
    return [*inherited_notes(notes).values(), answer]


def verdict_on_budget_end(question: str, attempts: Mapping[str, AnswerAttempt], notes: Notes) -> Verdict:
    """Return the verdict of a run whose budget ran out: the best answer so far."""
    closest = best_attempt(attempts)
    if closest is None:
        return make_verdict("out_of_budget", "", [])
    return make_verdict(
        "out_of_budget", closest["answer"], supporting_notes(notes, answer_note(question, closest, notes))
    )
