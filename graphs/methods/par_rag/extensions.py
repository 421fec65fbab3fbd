"""What the paper lacks: notes of another run, drafts that need no review, and reviews that reject an earlier step."""

from collections.abc import Mapping, Sequence

from sleuth.agents.roles.judging import Review, StepReview
from sleuth.graphs.core.answer import Note
from sleuth.graphs.core.state import Update
from sleuth.graphs.evidence.text_spans import content_words, find_sentence
from sleuth.graphs.methods.par_rag.steps import Notes, Plan, StepDraft, trajectory
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.text.tokenization import sentence_spans
from sleuth.tools.types import Passage


def answer_from_notes(plan: Plan, notes: Notes) -> dict[str, Note | None]:
    """Move inherited notes that answer a step, word for word, to its key; no other note keeps a step's key."""
    keys = {comparison_key(note["question"]): key for key, note in notes.items() if note["finding"]}
    answering = {
        step: keys[comparison_key(about["question"])]
        for step, about in plan.items()
        if comparison_key(about["question"]) in keys
    }
    displaced = [key for key in notes if key in plan and key not in answering.values()]
    moved: dict[str, Note | None] = dict.fromkeys([*answering.values(), *displaced])
    moved |= {f"known {key}": notes[key] for key in displaced}
    return moved | {step: notes[key] for step, key in answering.items()}


def reopen_rejected_step(
    plan: Plan, notes: Notes, added: Mapping[str, Note], reviews: Mapping[str, StepReview]
) -> Update:
    """Return the update of a review that rejects an earlier step: its new question is for that step, not for its own.

    The rejected step and all that depend on it lose their answers. Of several such reviews the first counts. The new
    questions of other steps are dropped: these steps are refined and searched for again.

    Args:
        plan: the steps.
        notes: those before the reviews.
        added: the notes of accepted and revised drafts.
        reviews: the verdict on each step in progress.

    Returns:
        An empty update if no review rejects a step of the plan.
    """
    past = list(trajectory(plan, notes))
    for by, review in reviews.items():
        earlier = review.earlier_step if isinstance(review, Review) and review.status == "UNCONFIDENT" else None
        key = past[earlier - 1] if earlier and earlier <= len(past) else ""
        if key in plan:
            remark = f"asked again: the review of step {by} doubted {notes[key]['finding']!r}"
            return {
                "plan": {key: plan[key] | {"question": review.question, "remark": remark}},
                "notes": {**added, **dict.fromkeys(dependents(plan, key) | {by})},
                "wave": [key],
                "requeries": {},
            }
    return {}


def dependents(plan: Plan, key: str) -> set[str]:
    """Return a step and every later one that needs it, directly or through others."""
    keys = {key}
    for later, step in plan.items():
        if keys & set(step["needs"]):
            keys.add(later)
    return keys


def is_clearly_supported(question: str, draft: StepDraft, passages: Sequence[Passage]) -> bool:
    """Return whether a cited sentence with the draft's answer fits the question best, and no other passage as well.

    A sentence fits by the question's words that it contains; those of its passage's title count as its own, since the
    title names the subject of all its sentences. Another passage fits as well if one of its sentences has all the same
    words.
    """
    asked, cited = content_words(question), {citation["passage"]: citation["start"] for citation in draft["citations"]}
    cited_fit: frozenset[str] = frozenset()
    fits: list[tuple[str, frozenset[str]]] = []
    for passage in passages:
        for start, end in sentence_spans(passage.text):
            sentence = passage.text[start:end]
            fit = asked & content_words(f"{passage.title} {sentence}")
            fits.append((passage.id, fit))
            at = cited.get(passage.id, -1) - passage.start
            if start <= at < end and find_sentence(draft["answer"], sentence):
                cited_fit = max(cited_fit, fit, key=len)
    best = all(len(fit) <= len(cited_fit) for _, fit in fits)
    return bool(cited_fit) and best and not any(fit >= cited_fit for id, fit in fits if id not in cited)
