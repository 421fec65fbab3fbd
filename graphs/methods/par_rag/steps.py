"""A plan of steps and how far it has come: what a method that plans ahead keeps in its state, and does with each step.

Steps are keyed by their number as text. A step is done when there is a note under its key; notes under other keys were
handed over from another run.
"""

from collections.abc import Container, Mapping, Sequence
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from sleuth.agents.formatting import Step as PastStep
from sleuth.agents.model_calls import Desk
from sleuth.agents.roles.judging import reviewer
from sleuth.agents.roles.planning import OrderedStep, PlanStep, planner, refiner
from sleuth.agents.roles.reading import drafter
from sleuth.graphs.core import Citation, Note, Question, ask_or, same_question
from sleuth.graphs.evidence import check, clean, known_steps, names_in, note, saying, sentence_with, sources
from sleuth.tools.search import Query
from sleuth.tools.search.entity_graph import FUNCTION_WORDS
from sleuth.tools.search.entity_graph import tokenization as spans
from sleuth.tools.text import comparison_key
from sleuth.tools.types import Passage


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


def already_known(plan: Plan, notes: Notes) -> dict[str, Note | None]:
    """The handed-over notes that answer a step, word for word, moved to its key; none other keeps a step's key."""
    answered = {comparison_key(found["question"]): key for key, found in notes.items() if found["finding"]}
    taken = {
        key: answered[comparison_key(step["question"])]
        for key, step in plan.items()
        if comparison_key(step["question"]) in answered
    }
    aside = [key for key in notes if key in plan and key not in taken.values()]
    left = dict.fromkeys([*taken.values(), *aside])
    return {
        **left,
        **{f"known {key}": notes[key] for key in aside},
        **{key: notes[old] for key, old in taken.items()},
    }


def ready(plan: Plan, done: Container[str], *, side_by_side: bool) -> list[str]:
    """The steps to take next: those with all that they need, or only the first of them."""
    steps = [key for key, step in plan.items() if key not in done and all(need in done for need in step["needs"])]
    return steps if side_by_side else steps[:1]


def unfinished(plan: Plan, notes: Notes) -> bool:
    """Whether a step is still to be done."""
    return any(key not in notes for key in plan)


def step_query(plan: Plan, notes: Notes, key: str, *, draft: str = "", with_question: bool = True) -> Query:
    """What to look for: a step's question or its draft, or both, with the names that it builds on."""
    question = plan[key]["question"]
    text = f"{question} {draft}".strip() if with_question or not draft else draft
    built_on = (notes[need]["finding"] for need in plan[key]["needs"] if need in notes)
    return Query(text=text, hop=len(plan) > 1, entities=names_in([*built_on, draft]))


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


def past_steps(plan: Plan, notes: Notes) -> tuple[PastStep, ...]:
    """The trajectory as the roles see it."""
    return known_steps(trajectory(plan, notes).values())


async def plan_steps(
    question: str, notes: Notes, asking: Desk, *, planned: bool, side_by_side: bool
) -> dict[str, Step]:
    """The steps to answer a question of which notes tell what is known (PAR-RAG, section 3.4).

    Not `planned`: the question is the only step. Steps taken `side_by_side` say what they need. A plan that would
    answer the question from handed-over notes alone is replaced by one step that searches for the question.
    """
    single = planner.PlanStep.model_construct(question=question)  # may be longer than a reply's
    given = planner.PlanInput(question=question, known=known_steps(notes.values()))
    loss = "The question is taken as a plan of one step."
    if not planned:
        return numbered([single])
    steps: Sequence[OrderedStep]
    if side_by_side:
        steps = (await ask_or(asking, planner.PLAN, given, planner.Plan(steps=[single]), loss)).steps
    else:
        in_order = planner.OrderedPlan(steps=[single])
        steps = (await ask_or(asking, planner.PLAN_IN_ORDER, given, in_order, loss)).steps
    return numbered(steps if _searches(steps, question, notes) else [single])


def _searches(steps: Sequence[OrderedStep], question: str, notes: Notes) -> bool:
    """Whether a plan searches for something; one for a run without notes, or with its final answer, need not."""
    if not notes or Question(question=question, notes=dict(notes)).is_settled:
        return True
    known = [found["question"] for found in notes.values() if found["finding"]]
    return any(
        step.action == "Retrieve" and not any(same_question(step.question, each) for each in known) for step in steps
    )


async def draft_step(plan: Plan, notes: Notes, key: str, shown: Sequence[Passage], asking: Desk) -> Draft:
    """A step answered from the passages shown, or without any from the trajectory (PAR-RAG, section 3.5)."""
    question, loss = plan[key]["question"], f"Step {key} has no draft."
    if plan[key]["action"] == "Answer":
        past = drafter.ConcludeInput(question=question, trajectory=past_steps(plan, notes))
        concluded = await ask_or(asking, drafter.CONCLUDE, past, drafter.Conclusion(answer=""), loss)
        return Draft(answer=clean(concluded.answer), citations=[])
    given = drafter.DraftInput(question=question, sources=sources(shown))
    said = await ask_or(asking, drafter.DRAFT, given, drafter.Draft(answer=""), loss)
    return Draft(answer=clean(said.answer), citations=check(asking, said.answer, said.citations, shown))


def told_alone(question: str, draft: Draft, shown: Sequence[Passage]) -> bool:
    """Whether a cited sentence has the draft's answer and fits the question best, and no other passage fits as well.

    A sentence fits by the question's words that it has; those of its passage's title, which says whom all its sentences
    are about, count as its own. Another passage fits as well where one of its sentences has all the same words.
    """
    asked, cited = _content(question), {citation["passage"]: citation["start"] for citation in draft["citations"]}
    told: frozenset[str] = frozenset()
    fits: list[tuple[str, frozenset[str]]] = []
    for passage in shown:
        for start, end in spans.sentence_spans(passage.text):
            sentence = passage.text[start:end]
            fit = asked & _content(f"{passage.title} {sentence}")
            fits.append((passage.id, fit))
            at = cited.get(passage.id, -1) - passage.start
            if start <= at < end and sentence_with(draft["answer"], sentence):
                told = max(told, fit, key=len)
    best = all(len(fit) <= len(told) for _, fit in fits)
    return bool(told) and best and not any(fit >= told for id, fit in fits if id not in cited)


def _content(text: str) -> frozenset[str]:
    return frozenset(word.form for word in spans.tokenize(text)) - FUNCTION_WORDS


async def review_step(
    plan: Plan, key: str, draft: Draft, shown: Sequence[Passage], *, past: tuple[PastStep, ...] | None, asking: Desk
) -> tuple[reviewer.StepReview, Draft]:
    """What a review says, and the answer that stands if it is final (PAR-RAG, section 3.6).

    With `past` the reviewer sees the steps before, any of which it may blame. A revised answer stands only if one of
    its citations does.
    """
    loss = f"The draft of step {key} stands unreviewed."
    given = reviewer.ReviewStepInput(question=plan[key]["question"], answer=draft["answer"], sources=sources(shown))
    if past is None:
        said = await ask_or(asking, reviewer.REVIEW_STEP, given, reviewer.StepReview(status="PASS"), loss)
    else:
        looking_back = reviewer.looking_back(given, past)
        looked_back = await ask_or(asking, reviewer.REVIEW, looking_back, reviewer.Review(status="PASS"), loss)
        said = looked_back
    if said.status != "REVISED":
        return said, plainly(draft, shown)
    citations = check(asking, said.answer, said.citations, shown)
    if not citations:
        asking.warn(f"The revised answer of step {key} cites nothing that was shown: its draft stands.")
        return said, plainly(draft, shown)
    return said, plainly(Draft(answer=clean(said.answer), citations=citations), shown)


def plainly(draft: Draft, shown: Sequence[Passage]) -> Draft:
    """A draft that stands, with citations that say its answer word for word where the passages do."""
    return Draft(answer=draft["answer"], citations=saying(draft["answer"], draft["citations"], shown))


async def refine_step(original: str, plan: Plan, notes: Notes, key: str, asking: Desk) -> str:
    """A step's question with what it leaves open replaced by what was found (PAR-RAG, section 3.5)."""
    planned, answers = plan[key]["planned"], known_steps(notes[need] for need in plan[key]["needs"])
    given = refiner.RefineInput(question=planned, answers=answers, original=original)
    as_planned, loss = refiner.Refined(question=planned), f"Step {key} is asked as planned."
    return (await ask_or(asking, refiner.REFINE, given, as_planned, loss)).question
