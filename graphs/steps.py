"""A plan of steps and how far it has come: what a method that plans ahead keeps in its state.

Steps are keyed by their number as text. A step is done when there is a note under its key; notes under other keys were
handed over from another run.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from sleuth.agents.planner import OrderedStep, PlanStep
from sleuth.graphs.answer import Citation, Note
from sleuth.graphs.evidence import note


class Step(TypedDict):
    """`question` is what is asked now, `planned` what the plan said, `needs` the steps that it builds on."""

    thought: str
    planned: str
    question: str
    action: Literal["Retrieve", "Answer"]
    needs: list[str]
    remark: NotRequired[str]


class Draft(TypedDict):
    """What a step has been answered, and where that stands."""

    answer: str
    citations: list[Citation]


Plan = Mapping[str, Step]
Notes = Mapping[str, Note]


def numbered(steps: Sequence[OrderedStep]) -> dict[str, Step]:
    """A planner's steps; one that does not say what it needs builds on the one before, as in the paper."""
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


def already_known(plan: Plan, notes: Notes) -> dict[str, Note]:
    """The steps whose question was already answered, word for word, in what was handed over."""
    answered = {_words(found["question"]): found for found in notes.values()}
    known = {key: answered.get(_words(step["question"])) for key, step in plan.items()}
    return {key: found for key, found in known.items() if found}


def _words(question: str) -> str:
    return " ".join(question.casefold().split())


def ready(plan: Plan, done: Container[str], *, side_by_side: bool) -> list[str]:
    """The steps to take next: those with all that they need, or only the first of them."""
    steps = [key for key, step in plan.items() if key not in done and all(need in done for need in step["needs"])]
    return steps if side_by_side else steps[:1]


def unfinished(plan: Plan, notes: Notes) -> bool:
    """Whether a step is still to be done."""
    return any(key not in notes for key in plan)


def trajectory(plan: Plan, notes: Notes) -> dict[str, Note]:
    """What is known: first what was handed over, then the steps that are done, in the plan's order."""
    handed_over = [key for key in notes if key not in plan]
    return {key: notes[key] for key in [*handed_over, *plan] if key in notes}


def step_note(step: Step, draft: Draft, doubt: str = "") -> Note:
    """The entry of a finished step in the trajectory."""
    remark = "; ".join(text for text in (step.get("remark", ""), doubt) if text)
    return note(step["question"], draft["answer"], draft["citations"], remark)


def built_on(plan: Plan, key: str) -> set[str]:
    """A step and every later one that needs it, directly or through others."""
    found = {key}
    for later, step in plan.items():
        if found & set(step["needs"]):
            found.add(later)
    return found
