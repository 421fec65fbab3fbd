"""The roles that say what to ask next: planner, expander, fuser, refiner, and the detective's entities and queries."""

from collections.abc import Iterable, Mapping

from sleuth.agents import actor, detective, expander, follow_up, fuser, planner, refiner, subquery
from sleuth.agents.simulation.answering import fact_numbers, told
from sleuth.agents.simulation.gold import WHOLE, Gold
from sleuth.agents.simulation.said import Said, said
from sleuth.agents.simulation.scene import Scene
from sleuth.agents.simulation.wording import about, astray, described, filled, names, shortened
from sleuth.tools.text import words


def asked(scene: Scene, hop: int, known: Mapping[int, str] | None = None) -> str:
    """A hop's question (from 0), with what is known in it, by memory too, and descriptions in the place of the rest."""
    found = dict(scene.found if known is None else known)
    if scene.knows_unaided():
        found = {at: each.answer for at, each in enumerate(scene.gold.hops)} | found
    needs = scene.gold.hops[hop].needs()
    values = {need: found.get(need - 1) or described(scene.gold.nested(need - 1)) for need in needs}
    return shortened(filled(scene.gold.hops[hop].question, values))


def off_course(scene: Scene) -> str:
    """Where a wrong sub-question goes: something about one of the question's names."""
    about = names(scene.gold.question) or [scene.gold.question.rstrip("?")]
    return astray(scene.chance("off course").choice(about))


def _freely(scene: Scene, question: str) -> str:
    """The question, in other words at the rate set."""
    dice = scene.chance("freely")
    return scene.otherwise(question, dice.randint(1, 2)) if dice.random() < scene.simulation.rephrase else question


def plan(scene: Scene) -> Said:
    """PLAN: the hops that are not known."""
    hops = _open(scene)
    places = {hop: at for at, hop in enumerate(hops, start=1)}
    wrong = scene.chance("which").choice(hops) if hops and scene.errs("wrong-question") else None
    steps = [
        planner.PlanStep(
            thought=_thought(scene, hop),
            question=off_course(scene) if hop == wrong else asked(scene, hop),
            needs=[places[need - 1] for need in scene.gold.hops[hop].needs() if need - 1 in places],
        )
        for hop in hops
    ]
    return said(
        planner.Plan(steps=steps or [planner.PlanStep(question=shortened(scene.gold.question), action="Answer")])
    )


def _thought(scene: Scene, hop: int) -> str:
    if not scene.simulation.teaching:
        return "It builds on what was found." if hop else "This has to be known."
    known, needs = scene.gold.hops[hop], scene.gold.hops[hop].needs()
    by_relation = known.question == about(known.subject, known.predicate)
    wanted = f"the {known.predicate}" if by_relation else "what builds on it" if needs else "the fact to begin with"
    return f"{'then' if needs else 'first'} {wanted}"[:120]


def plan_in_order(scene: Scene) -> Said:
    """PLAN_IN_ORDER: the same without saying what needs what."""
    steps = planner.Plan.model_validate_json(plan(scene).text).steps
    in_order = [planner.OrderedStep(thought=each.thought, question=each.question, action=each.action) for each in steps]
    return said(planner.OrderedPlan(steps=in_order))


def _open(scene: Scene) -> list[int]:
    if WHOLE in scene.found:
        return []
    return [hop for hop in range(len(scene.gold.hops)) if hop not in scene.found]


def begin(scene: Scene) -> Said:
    """BEGIN."""
    return Said(text=subquery.NO_RETRIEVAL if scene.knows_unaided() else subquery.SUBQ)


def next_query(scene: Scene) -> Said:
    """NEXT."""
    query = next_question(scene, _queries(scene))
    plan = subquery.SUBQ if query else subquery.SUFFICIENT
    return said(subquery.Next.model_validate({"plan": plan, "query": query}))


def next_with_finding(scene: Scene) -> Said:
    """NEXT_WITH_FINDING: also what the latest sub-query has found; of the question itself what leads towards it."""
    query, finding, facts = next_question(scene, _queries(scene)), "", list[int]()
    latest = scene.target(scene.given["queries"][-1]["text"]) if scene.given["queries"] else None
    if latest == WHOLE:
        facts = fact_numbers(scene, range(len(scene.gold.hops)))
        finding = scene.value(WHOLE) or ""
    elif latest is not None and scene.holds(latest):
        facts, finding = fact_numbers(scene, range(latest, latest + 1)), scene.gold.hops[latest].answer
    plan = subquery.SUBQ if query else subquery.SUFFICIENT
    return said(
        subquery.NextWithFinding.model_validate(
            {"plan": plan, "query": query, "finding": finding[:200], "facts": facts}
        )
    )


_TRIES = 2
"""How often the same is asked in other words before it is given up."""


def _queries(scene: Scene) -> list[str]:
    return [str(each["text"]) for each in scene.given["queries"]]


def next_question(scene: Scene, asked_before: Iterable[str]) -> str:
    """What is missing first; empty where nothing is, or where it was asked for in vain."""
    if scene.value(WHOLE) is not None:
        return ""
    if scene.errs("wrong-question"):
        return off_course(scene)
    before = [words(each) for each in asked_before]
    known = {hop: scene.gold.hops[hop].answer for hop in range(len(scene.gold.hops)) if scene.holds(hop)}
    for hop in scene.missing():
        ways = [scene.otherwise(asked(scene, hop, known), way) for way in range(_TRIES)]
        if new := [way for way in ways if words(way) not in before]:
            return new[0]
    return ""


def follow_up_question(scene: Scene) -> Said:
    """FOLLOW_UP: what is missing first, else what follows from the intermediate answers."""
    question = next_question(scene, [asked for asked, _ in scene.steps])
    if question:
        return said(follow_up.FollowUp(follow_up="Yes", question=question))
    return said(follow_up.FollowUp(follow_up="No", answer=scene.value(WHOLE) or ""))


def think(scene: Scene) -> Said:
    """THINK: what is known and was not said yet, a hop at a time; then the answer, or what is missing."""
    before = [words(each).rstrip(".") for each in scene.given["thoughts"]]
    known = [scene.statement(hop) for hop in range(len(scene.gold.hops)) if scene.holds(hop)]
    if new := [line for line in known if not any(words(line).startswith(each) for each in before)]:
        return Said(text=new[0])
    if answer := told(scene, scene.question).answer:
        return Said(text=f"So the answer is: {answer}.")
    return Said(text=next_question(scene, scene.given["thoughts"]) or "The rest is not told.")


def act(scene: Scene) -> Said:
    """ACT: a search for what is missing first; an answer where nothing is, or where nothing more is found."""
    query = next_question(scene, scene.given["searches"])
    if query:
        return said(actor.Action(action="search", query=query))
    found = told(scene, scene.question)
    return said(actor.Action(action="answer", answer=found.answer, citations=[*found.quotes]))


def expand(scene: Scene) -> Said:
    """EXPAND: the first hop that neither the steps nor what is known cover; now and then one that could come later.

    Where something follows from all hops together, the question itself is the last step.
    """
    targets = (scene.target(step) for step in scene.given["steps"])
    covered = {target for target in targets if target is not None} | set(scene.found)
    left = [hop for hop in range(len(scene.gold.hops)) if hop not in covered]
    if scene.errs("wrong-question"):
        return said(expander.NextStep(step=off_course(scene), final=len(left) <= 1))
    if not left or WHOLE in covered:
        return said(expander.NextStep(step=_freely(scene, shortened(scene.gold.question)), final=True))
    dice = scene.chance("order")
    hop = dice.choice(left) if dice.random() < scene.simulation.reorder else left[0]
    last = scene.gold.is_chain() and hop == len(scene.gold.hops) - 1
    return said(expander.NextStep(step=_freely(scene, asked(scene, hop)), final=last))


def fuse(scene: Scene) -> Said:
    """FUSE: steps that ask for the same become one of them; others are put side by side."""
    steps: list[str] = scene.given["steps"]
    apart = {scene.target(step): step for step in reversed(steps)}
    if scene.errs("wrong-question"):
        return said(fuser.Fused(step=off_course(scene)))
    return said(fuser.Fused(step=" ".join(reversed(apart.values()))[:300]))


def refine(scene: Scene) -> Said:
    """REFINE: what was found in the place of what is open; the question itself in other words."""
    planned = str(scene.given["question"])
    target = scene.target(planned)
    if scene.errs("wrong-question"):
        return said(refiner.Refined(question=off_course(scene)))
    if target is None:
        return said(refiner.Refined(question=planned))
    if target == WHOLE:
        return said(refiner.Refined(question=planned if scene.simulation.teaching else scene.otherwise(planned, 1)))
    return said(refiner.Refined(question=asked(scene, target)))


def entities(scene: Scene) -> Said:
    """ENTITIES."""
    found = names(scene.gold.question) or [scene.gold.question.rstrip("?")]
    return said(detective.Entities(entities=[name[:80] for name in found][: detective.MAX_ENTITIES]))


def requery(scene: Scene) -> Said:
    """REQUERY: the first hop that is missing, with what is known in it."""
    known = dict(held(scene.gold, scene))
    missing = scene.missing()
    if scene.errs("wrong-question"):
        return said(detective.Requery(query=off_course(scene)))
    if not missing:
        return said(detective.Requery(query=scene.otherwise(scene.gold.question, 1)))
    return said(detective.Requery(query=asked(scene, missing[0], known)))


def held(gold: Gold, scene: Scene) -> Iterable[tuple[int, str]]:
    """The hops whose right answers the model has."""
    return ((hop, gold.hops[hop].answer) for hop in range(len(gold.hops)) if scene.holds(hop))
