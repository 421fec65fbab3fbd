"""A plan of steps and its progress: the state of a method that plans ahead.

Steps are keyed by their number as text. A step is done when there is a note under its key; notes under other keys are
inherited from another run.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Annotated, Literal, NotRequired

from typing_extensions import TypedDict

from sleuth.agents.roles.planning import OrderedStep, PlanStep
from sleuth.graphs.core.answer import Citation, Note
from sleuth.graphs.core.state import KeysOf
from sleuth.graphs.evidence.citations import ensure_verbatim_support
from sleuth.graphs.evidence.outcomes import make_note
from sleuth.graphs.evidence.retrieval import short_names
from sleuth.graphs.evidence.text_spans import content_words, find_sentence
from sleuth.tools.search import Query
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.text.tokenization import sentence_spans
from sleuth.tools.types import Passage


class Step(TypedDict):
    """`question` is the present question, `planned` that of the plan, `needs` the steps that it builds on."""

    thought: str
    planned: str
    question: str
    action: Literal["Retrieve", "Answer"]
    needs: Annotated[list[str], KeysOf("plan")]
    remark: NotRequired[str]


class StepDraft(TypedDict):
    """A step's answer with its citations."""

    answer: str
    citations: list[Citation]


Plan = Mapping[str, Step]
Notes = Mapping[str, Note]


def number_steps(steps: Sequence[OrderedStep]) -> dict[str, Step]:
    """Number a planner's steps; one without `needs` builds on the one before, as in the paper."""
    plan: dict[str, Step] = {}
    for at, step in enumerate(steps, start=1):
        needs = step.needs if isinstance(step, PlanStep) else [at - 1]
        plan[str(at)] = Step(
            thought=step.thought,
            planned=step.question,
            question=step.question,
            action=step.action,
            needs=[str(need) for need in sorted(set(needs)) if 0 < need < at],
        )
    return plan


def answer_from_notes(plan: Plan, notes: Notes) -> dict[str, Note | None]:
    """Move inherited notes that answer a step, word for word, to its key; no other note keeps a step's key."""
    answered = {comparison_key(note["question"]): key for key, note in notes.items() if note["finding"]}
    taken = {
        key: answered[comparison_key(step["question"])]
        for key, step in plan.items()
        if comparison_key(step["question"]) in answered
    }
    aside = [key for key in notes if key in plan and key not in taken.values()]
    moved: dict[str, Note | None] = dict.fromkeys([*taken.values(), *aside])
    moved |= {f"known {key}": notes[key] for key in aside}
    return moved | {key: notes[old] for key, old in taken.items()}


def ready_steps(plan: Plan, done: Container[str], *, parallel: bool) -> list[str]:
    """Return the next steps: those whose needs are done, or only the first of them."""
    steps = [key for key, step in plan.items() if key not in done and all(need in done for need in step["needs"])]
    return steps if parallel else steps[:1]


def is_unfinished(plan: Plan, notes: Notes) -> bool:
    """Return whether a step is still to be done."""
    return any(key not in notes for key in plan)


def step_query(plan: Plan, notes: Notes, key: str, *, draft: str = "", with_question: bool = True) -> Query:
    """Return the query of a step: its question or its draft, or both, with the names that it builds on."""
    question = plan[key]["question"]
    text = f"{question} {draft}".strip() if with_question or not draft else draft
    built_on = (notes[need]["finding"] for need in plan[key]["needs"] if need in notes)
    return Query(text=text, hop=len(plan) > 1, entities=short_names([*built_on, draft]))


def trajectory(plan: Plan, notes: Notes) -> dict[str, Note]:
    """Return the known findings: first the inherited notes, then finished steps, in the plan's order."""
    handed_over = [key for key in notes if key not in plan]
    return {key: notes[key] for key in [*handed_over, *plan] if key in notes}


def step_note(step: Step, draft: StepDraft, passages: Sequence[Passage], doubt: str = "") -> Note:
    """Return the entry of a finished step in the trajectory; its citations contain the answer if possible."""
    remark = "; ".join(text for text in (step.get("remark", ""), doubt) if text)
    citations = ensure_verbatim_support(draft["answer"], draft["citations"], passages, question=step["question"])
    return make_note(step["question"], draft["answer"], citations, remark)


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
