"""A plan of steps and its progress: the state of a method that plans ahead, and the work on each step.

Steps are keyed by their number as text. A step is done when there is a note under its key; notes under other keys are
inherited from another run.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from sleuth.agents.formatting import Step as PastStep
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles import inputs, judging, planning, reading
from sleuth.agents.roles.planning import OrderedStep, PlanStep
from sleuth.graphs.core.answer import Citation, Note
from sleuth.graphs.core.node import ask_or
from sleuth.graphs.core.state import Question, same_question
from sleuth.graphs.evidence.citations import ensure_verbatim_support, verify_quotes
from sleuth.graphs.evidence.outcomes import as_steps, make_note, stated_answer
from sleuth.graphs.evidence.retrieval import as_sources, short_names
from sleuth.tools.search import Query
from sleuth.tools.text import comparison_key
from sleuth.tools.types import Passage


class Step(TypedDict):
    """`question` is the present question, `planned` that of the plan, `needs` the steps that it builds on."""

    thought: str
    planned: str
    question: str
    action: Literal["Retrieve", "Answer"]
    needs: list[str]
    remark: NotRequired[str]


class Draft(TypedDict):
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
    answered = {comparison_key(found["question"]): key for key, found in notes.items() if found["finding"]}
    taken = {
        key: answered[comparison_key(step["question"])]
        for key, step in plan.items()
        if comparison_key(step["question"]) in answered
    }
    aside = [key for key in notes if key in plan and key not in taken.values()]
    moved: dict[str, Note | None] = dict.fromkeys([*taken.values(), *aside])
    moved |= {f"known {key}": notes[key] for key in aside}
    return moved | {key: notes[old] for key, old in taken.items()}


def ready_steps(plan: Plan, done: Container[str], *, side_by_side: bool) -> list[str]:
    """Return the next steps: those whose needs are done, or only the first of them."""
    steps = [key for key, step in plan.items() if key not in done and all(need in done for need in step["needs"])]
    return steps if side_by_side else steps[:1]


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


def step_note(step: Step, draft: Draft, doubt: str = "") -> Note:
    """Return the entry of a finished step in the trajectory."""
    remark = "; ".join(text for text in (step.get("remark", ""), doubt) if text)
    return make_note(step["question"], draft["answer"], draft["citations"], remark)


def dependents(plan: Plan, key: str) -> set[str]:
    """Return a step and every later one that needs it, directly or through others."""
    found = {key}
    for later, step in plan.items():
        if found & set(step["needs"]):
            found.add(later)
    return found


async def plan_steps(
    question: str, notes: Notes, model: ModelCaller, *, planned: bool, side_by_side: bool
) -> dict[str, Step]:
    """Plan the steps of a question whose notes are known (PAR-RAG, section 3.4).

    If not `planned`, the question is the only step. Steps that may run in parallel (`side_by_side`) name their needs. A
    plan that would answer the question from inherited notes alone is replaced by one step that searches for the
    question.
    """
    single = planning.PlanStep.model_construct(question=question)  # may be longer than a reply's
    if not planned:
        return number_steps([single])
    given = inputs.StepsInput(question=question, known=as_steps(notes.values()))
    loss = "The question is taken as a plan of one step."
    made: planning.Plan | planning.OrderedPlan
    if side_by_side:
        made = await ask_or(model, planning.PLAN, given, planning.Plan(steps=[single]), loss)
    else:
        made = await ask_or(model, planning.PLAN_IN_ORDER, given, planning.OrderedPlan(steps=[single]), loss)
    return number_steps(made.steps if _searches(made.steps, question, notes) else [single])


def _searches(steps: Sequence[OrderedStep], question: str, notes: Notes) -> bool:
    """Return whether a plan searches for something; one for a run without notes, or with its final answer, need not."""
    if not notes or Question(question=question, notes=dict(notes)).is_settled:
        return True
    known = [found["question"] for found in notes.values() if found["finding"]]
    return any(
        step.action == "Retrieve" and not any(same_question(step.question, each) for each in known) for step in steps
    )


async def draft_step(
    plan: Plan, notes: Notes, key: str, shown: Sequence[Passage], model: ModelCaller, *, searched: bool, sentence: bool
) -> Draft:
    """Answer a step from the shown passages, or if not `searched` from the trajectory (PAR-RAG, section 3.5).

    The answer has few words, or is a full `sentence`.
    """
    question, loss = plan[key]["question"], f"Step {key} has no draft."
    if not searched:
        past = inputs.TrajectoryInput(question=question, trajectory=as_steps(trajectory(plan, notes).values()))
        concluded = await ask_or(model, reading.CONCLUDE, past, reading.Conclusion(answer=""), loss)
        return Draft(answer=stated_answer(concluded.answer, question), citations=[])
    given = inputs.SourcesInput(question=question, sources=as_sources(shown))
    role = reading.DRAFT_SENTENCE if sentence else reading.DRAFT
    reply = await ask_or(model, role, given, reading.Draft(answer=""), loss)
    answer = stated_answer(reply.answer, question)
    citations = verify_quotes(model, answer, reply.citations, shown, question=question) if answer else []
    return Draft(answer=answer, citations=citations)


async def extract_names(text: str, model: ModelCaller) -> tuple[str, ...]:
    """Return the names in a query, from which the knowledge graph is searched (PAR-RAG, section 3.3)."""
    loss = "The names are taken by rule."
    reply = await ask_or(model, reading.EXTRACT_NAMES, reading.NamesInput(text=text), reading.Names(names=[]), loss)
    return tuple(dict.fromkeys(reply.names))


async def review_step(
    plan: Plan,
    key: str,
    draft: Draft,
    shown: Sequence[Passage],
    *,
    past: tuple[PastStep, ...] | None,
    model: ModelCaller,
    checked: bool,
) -> tuple[judging.StepReview, Draft]:
    """Return the review, and the final answer if the review accepts or revises it (PAR-RAG, section 3.6).

    With `past` the reviewer sees the steps before, any of which it may reject. If `checked`, a revised answer is
    accepted only if one of its citations can be verified.
    """
    loss = f"The draft of step {key} is accepted without a review."
    given = judging.ReviewStepInput(question=plan[key]["question"], answer=draft["answer"], sources=as_sources(shown))
    reply: judging.StepReview | judging.Review
    if past is None:
        reply = await ask_or(model, judging.REVIEW_STEP, given, judging.StepReview(status="PASS"), loss)
    else:
        looking_back = judging.ReviewInput(**vars(given), trajectory=past)
        reply = await ask_or(model, judging.REVIEW, looking_back, judging.Review(status="PASS"), loss)
    if reply.status == "REVISED":
        question, answer = plan[key]["question"], stated_answer(reply.answer, plan[key]["question"])
        citations = verify_quotes(model, answer, reply.citations, shown, question=question) if answer else []
        if citations or not checked:
            draft = Draft(answer=answer, citations=citations)
        else:
            model.warn(f"The revised answer of step {key} cites no retrieved passage; keeping the draft.")
    return reply, with_verbatim_citations(draft, shown, plan[key]["question"])


def with_verbatim_citations(draft: Draft, shown: Sequence[Passage], question: str) -> Draft:
    """Return an accepted draft whose citations contain the answer verbatim where possible."""
    citations = ensure_verbatim_support(draft["answer"], draft["citations"], shown, question=question)
    return Draft(answer=draft["answer"], citations=citations)


async def refine_step(original: str, plan: Plan, notes: Notes, key: str, model: ModelCaller) -> str:
    """Return a step's question with findings in place of what it leaves open (PAR-RAG, section 3.5)."""
    planned, answers = plan[key]["planned"], as_steps(notes[need] for need in plan[key]["needs"])
    given = planning.RefineInput(question=planned, answers=answers, original=original)
    as_planned, loss = planning.Refined(question=planned), f"Step {key} is asked as planned."
    return (await ask_or(model, planning.REFINE, given, as_planned, loss)).question
