"""The roles that say what to ask next: planner, expander, fuser, refiner, and the detective's entities and queries."""

from collections.abc import Iterable, Mapping

from sleuth.agents.roles.planning import expander, follow_up, planner, refiner
from sleuth.agents.roles.planning import search_agent as actor
from sleuth.agents.roles.planning import step_merger as fuser
from sleuth.agents.roles.planning import subqueries as subquery
from sleuth.agents.roles.reasoning import evidence_discovery as detective
from sleuth.studio.simulation.answering import fact_numbers, find_answer
from sleuth.studio.simulation.gold import WHOLE, Gold
from sleuth.studio.simulation.reply import SimulatedReply, structured
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.wording import about, astray, described, filled, names, shortened
from sleuth.tools.text import comparison_key


def asked(view: RequestView, hop: int, known: Mapping[int, str] | None = None) -> str:
    """A hop's question (from 0), with what is known in it, by memory too, and descriptions in the place of the rest."""
    found = dict(view.found if known is None else known)
    if view.knows_unaided():
        found = {at: each.answer for at, each in enumerate(view.gold.hops)} | found
    needs = view.gold.hops[hop].needs()
    values = {need: found.get(need - 1) or described(view.gold.nested(need - 1)) for need in needs}
    return shortened(filled(view.gold.hops[hop].question, values))


def off_course(view: RequestView) -> str:
    """Where a wrong sub-question goes: something about one of the question's names."""
    about = names(view.gold.question) or [view.gold.question.rstrip("?")]
    return astray(view.chance("off course").choice(about))


def _freely(view: RequestView, question: str) -> str:
    """The question, in other words at the rate set."""
    dice = view.chance("freely")
    return view.otherwise(question, dice.randint(1, 2)) if dice.random() < view.simulation.rephrase else question


def plan(view: RequestView) -> SimulatedReply:
    """PLAN: the hops that are not known."""
    hops = _open(view)
    places = {hop: at for at, hop in enumerate(hops, start=1)}
    wrong = view.chance("which").choice(hops) if hops and view.errs("wrong-question") else None
    steps = [
        planner.PlanStep(
            thought=_thought(view, hop),
            question=off_course(view) if hop == wrong else asked(view, hop),
            needs=[places[need - 1] for need in view.gold.hops[hop].needs() if need - 1 in places],
        )
        for hop in hops
    ]
    return structured(
        planner.Plan(steps=steps or [planner.PlanStep(question=shortened(view.gold.question), action="Answer")])
    )


def _thought(view: RequestView, hop: int) -> str:
    if not view.simulation.teaching:
        return "It builds on what was found." if hop else "This has to be known."
    known, needs = view.gold.hops[hop], view.gold.hops[hop].needs()
    by_relation = known.question == about(known.subject, known.predicate)
    wanted = f"the {known.predicate}" if by_relation else "what builds on it" if needs else "the fact to begin with"
    return f"{'then' if needs else 'first'} {wanted}"[:120]


def plan_in_order(view: RequestView) -> SimulatedReply:
    """PLAN_IN_ORDER: the same without saying what needs what."""
    steps = planner.Plan.model_validate_json(plan(view).text).steps
    in_order = [planner.OrderedStep(thought=each.thought, question=each.question, action=each.action) for each in steps]
    return structured(planner.OrderedPlan(steps=in_order))


def _open(view: RequestView) -> list[int]:
    if WHOLE in view.found:
        return []
    return [hop for hop in range(len(view.gold.hops)) if hop not in view.found]


def begin(view: RequestView) -> SimulatedReply:
    """BEGIN."""
    return SimulatedReply(text=subquery.NO_RETRIEVAL if view.knows_unaided() else subquery.SUBQ)


def next_query(view: RequestView) -> SimulatedReply:
    """NEXT."""
    query = next_question(view, _queries(view))
    plan = subquery.SUBQ if query else subquery.SUFFICIENT
    return structured(subquery.Next.model_validate({"plan": plan, "query": query}))


def next_with_finding(view: RequestView) -> SimulatedReply:
    """NEXT_WITH_FINDING: also what the latest sub-query has found; of the question itself what leads towards it."""
    query, finding, facts = next_question(view, _queries(view)), "", list[int]()
    latest = view.target(view.given["queries"][-1]["text"]) if view.given["queries"] else None
    if latest == WHOLE:
        facts = fact_numbers(view, range(len(view.gold.hops)))
        finding = view.value(WHOLE) or ""
    elif latest is not None and view.holds(latest):
        facts, finding = fact_numbers(view, range(latest, latest + 1)), view.gold.hops[latest].answer
    plan = subquery.SUBQ if query else subquery.SUFFICIENT
    return structured(
        subquery.NextWithFinding.model_validate(
            {"plan": plan, "query": query, "finding": finding[:200], "facts": facts}
        )
    )


_TRIES = 2
"""How often the same is asked in other words before it is given up."""


def _queries(view: RequestView) -> list[str]:
    return [str(each["text"]) for each in view.given["queries"]]


def next_question(view: RequestView, asked_before: Iterable[str]) -> str:
    """What is missing first; empty where nothing is, or where it was asked for in vain."""
    if view.value(WHOLE) is not None:
        return ""
    if view.errs("wrong-question"):
        return off_course(view)
    before = [comparison_key(each) for each in asked_before]
    known = {hop: view.gold.hops[hop].answer for hop in range(len(view.gold.hops)) if view.holds(hop)}
    for hop in view.missing():
        ways = [view.otherwise(asked(view, hop, known), way) for way in range(_TRIES)]
        if new := [way for way in ways if comparison_key(way) not in before]:
            return new[0]
    return ""


def follow_up_question(view: RequestView) -> SimulatedReply:
    """FOLLOW_UP: what is missing first, else what follows from the intermediate answers."""
    question = next_question(view, [asked for asked, _ in view.steps])
    if question:
        return structured(follow_up.FollowUp(follow_up="Yes", question=question))
    return structured(follow_up.FollowUp(follow_up="No", answer=view.value(WHOLE) or ""))


def think(view: RequestView) -> SimulatedReply:
    """THINK: what is known and was not said yet, a hop at a time; then the answer, or what is missing."""
    before = [comparison_key(each).rstrip(".") for each in view.given["thoughts"]]
    known = [view.statement(hop) for hop in range(len(view.gold.hops)) if view.holds(hop)]
    if new := [line for line in known if not any(comparison_key(line).startswith(each) for each in before)]:
        return SimulatedReply(text=new[0])
    if answer := find_answer(view, view.question).answer:
        return SimulatedReply(text=f"So the answer is: {answer}.")
    return SimulatedReply(text=next_question(view, view.given["thoughts"]) or "The rest is not told.")


def act(view: RequestView) -> SimulatedReply:
    """ACT: a search for what is missing first; an answer where nothing is, or where nothing more is found."""
    query = next_question(view, view.given["searches"])
    if query:
        return structured(actor.Action(action="search", query=query))
    found = find_answer(view, view.question)
    return structured(actor.Action(action="answer", answer=found.answer, citations=[*found.quotes]))


def expand(view: RequestView) -> SimulatedReply:
    """EXPAND: the first hop that neither the steps nor what is known cover; now and then one that could come later.

    Where something follows from all hops together, the question itself is the last step.
    """
    targets = (view.target(step) for step in view.given["steps"])
    covered = {target for target in targets if target is not None} | set(view.found)
    left = [hop for hop in range(len(view.gold.hops)) if hop not in covered]
    if view.errs("wrong-question"):
        return structured(expander.NextStep(step=off_course(view), final=len(left) <= 1))
    if not left or WHOLE in covered:
        return structured(expander.NextStep(step=_freely(view, shortened(view.gold.question)), final=True))
    dice = view.chance("order")
    hop = dice.choice(left) if dice.random() < view.simulation.reorder else left[0]
    last = view.gold.is_chain() and hop == len(view.gold.hops) - 1
    return structured(expander.NextStep(step=_freely(view, asked(view, hop)), final=last))


def fuse(view: RequestView) -> SimulatedReply:
    """FUSE: steps that ask for the same become one of them; others are put side by side."""
    steps: list[str] = view.given["steps"]
    apart = {view.target(step): step for step in reversed(steps)}
    if view.errs("wrong-question"):
        return structured(fuser.Fused(step=off_course(view)))
    return structured(fuser.Fused(step=" ".join(reversed(apart.values()))[:300]))


def refine(view: RequestView) -> SimulatedReply:
    """REFINE: what was found in the place of what is open; the question itself in other words."""
    planned = str(view.given["question"])
    target = view.target(planned)
    if view.errs("wrong-question"):
        return structured(refiner.Refined(question=off_course(view)))
    if target is None:
        return structured(refiner.Refined(question=planned))
    if target == WHOLE:
        return structured(refiner.Refined(question=planned if view.simulation.teaching else view.otherwise(planned, 1)))
    return structured(refiner.Refined(question=asked(view, target)))


def entities(view: RequestView) -> SimulatedReply:
    """ENTITIES."""
    found = names(view.gold.question) or [view.gold.question.rstrip("?")]
    return structured(detective.Entities(entities=[name[:80] for name in found][: detective.MAX_ENTITIES]))


def requery(view: RequestView) -> SimulatedReply:
    """REQUERY: the first hop that is missing, with what is known in it."""
    known = dict(held(view.gold, view))
    missing = view.missing()
    if view.errs("wrong-question"):
        return structured(detective.Requery(query=off_course(view)))
    if not missing:
        return structured(detective.Requery(query=view.otherwise(view.gold.question, 1)))
    return structured(detective.Requery(query=asked(view, missing[0], known)))


def held(gold: Gold, view: RequestView) -> Iterable[tuple[int, str]]:
    """The hops whose right answers the model has."""
    return ((hop, gold.hops[hop].answer) for hop in range(len(gold.hops)) if view.holds(hop))
