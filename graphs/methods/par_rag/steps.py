"""A plan of steps and its progress: the state of a method that plans ahead.

Steps are keyed by their number as text. A step is done when there is a note under its key; notes under other keys are
inherited from another run.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Annotated, Literal, NotRequired

from typing_extensions import TypedDict

from sleuth.agents.roles.planning import OrderedStep, PlanStep
from sleuth.graphs.core.answer import Citation, Note
from sleuth.graphs.core.context import SearchSettings
from sleuth.graphs.core.state import KeysOf
from sleuth.graphs.evidence.citations import ensure_verbatim_support
from sleuth.graphs.evidence.outcomes import make_note
from sleuth.graphs.evidence.retrieval import short_names
from sleuth.tools.search import Query
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


def ready_steps(plan: Plan, done: Container[str], *, parallel: bool) -> list[str]:
    """Return the next steps: those whose needs are done, or only the first of them."""
    steps = [key for key, step in plan.items() if key not in done and all(need in done for need in step["needs"])]
    return steps if parallel else steps[:1]


def step_query(
    settings: SearchSettings, plan: Plan, notes: Notes, key: str, *, draft: str = "", with_question: bool = True
) -> Query:
    """Return the query of a step: its question or its draft, or both, with the names that it builds on (ours)."""
    question = plan[key]["question"]
    text = f"{question} {draft}".strip() if with_question or not draft else draft  # without a draft: ours
    built_on = (notes[need]["finding"] for need in plan[key]["needs"] if need in notes)
    return settings.query(text, hop=len(plan) > 1, entities=short_names([*built_on, draft]))


def trajectory(plan: Plan, notes: Notes) -> dict[str, Note]:
    """Return the known findings: first the inherited notes, then finished steps, in the plan's order."""
    inherited = [key for key in notes if key not in plan]
    return {key: notes[key] for key in [*inherited, *plan] if key in notes}


def step_note(step: Step, draft: StepDraft, passages: Sequence[Passage], doubt: str = "") -> Note:
    """Return the entry of a finished step in the trajectory; ours: a citation contains the answer, if possible."""
    remark = "; ".join(text for text in (step.get("remark", ""), doubt) if text)
    citations = ensure_verbatim_support(draft["answer"], draft["citations"], passages, question=step["question"])
    return make_note(step["question"], draft["answer"], citations, remark)
