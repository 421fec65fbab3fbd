"""Additions of ours to PAR-RAG: no review of a draft that is clearly supported, and a return to an earlier step."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from sleuth.agents.roles import judging
from sleuth.graphs.core.state import Update
from sleuth.graphs.evidence.text_spans import content_words, find_sentence
from sleuth.graphs.methods.par_rag.steps import Draft, Step, dependents, trajectory
from sleuth.tools.text import sentence_spans
from sleuth.tools.types import Passage

if TYPE_CHECKING:
    from sleuth.graphs.methods.par_rag.graph import State


def is_clearly_supported(question: str, draft: Draft, shown: Sequence[Passage]) -> bool:
    """Return whether a cited sentence with the draft's answer fits the question best, and no other passage fits as
    well.

    A sentence fits by the question's words that it contains; those of its passage's title count as its own, since the
    title names the subject of all its sentences. Another passage fits as well if one of its sentences has all the same
    words.
    """
    asked, cited = content_words(question), {citation["passage"]: citation["start"] for citation in draft["citations"]}
    cited_fit: frozenset[str] = frozenset()
    fits: list[tuple[str, frozenset[str]]] = []
    for passage in shown:
        for start, end in sentence_spans(passage.text):
            sentence = passage.text[start:end]
            fit = asked & content_words(f"{passage.title} {sentence}")
            fits.append((passage.id, fit))
            at = cited.get(passage.id, -1) - passage.start
            if start <= at < end and find_sentence(draft["answer"], sentence):
                cited_fit = max(cited_fit, fit, key=len)
    best = all(len(fit) <= len(cited_fit) for _, fit in fits)
    return bool(cited_fit) and best and not any(fit >= cited_fit for id, fit in fits if id not in cited)


def reopen_rejected_step(
    state: "State", update: Update, reviews: Mapping[str, judging.StepReview], max_returns: int
) -> Update:
    """Return the update of a review that rejects an earlier step: its new question is for that step, not for its own.

    The rejected step and all that depend on it lose their answers. Of several such reviews the first counts.
    """
    past = list(trajectory(state.plan, state.notes))
    for by, review in reviews.items():
        earlier = review.earlier_step if isinstance(review, judging.Review) and review.status == "UNCONFIDENT" else None
        key = past[earlier - 1] if earlier and earlier <= len(past) else None
        if key in state.plan and state.returns < max_returns:
            remark = f"asked again: the review of step {by} doubted {state.notes[key]['finding']!r}"
            reopened = Step(**{**state.plan[key], "question": review.question, "remark": remark})
            return {
                "plan": {other: step for other, step in update["plan"].items() if other != by} | {key: reopened},
                "notes": update["notes"] | dict.fromkeys(dependents(state.plan, key) | {by}),
                "wave": [key],
                "requeries": {other: asked for other, asked in update["requeries"].items() if other != by},
                "returns": state.returns + 1,
            }
    return update
