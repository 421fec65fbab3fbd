"""Simulated roles that choose or word the next question, from the planner to the rewriter."""

from collections.abc import Iterable, Mapping

from sleuth.agents.role import Output
from sleuth.agents.roles import hybrid, planning, reading, reasoning
from sleuth.agents.roles.searching import TAGS, Format
from sleuth.tools.text.normalization import comparison_key
from training.simulation.answering import fact_numbers, find_answer
from training.simulation.gold import WHOLE
from training.simulation.request_view import RequestView
from training.simulation.wording import (
    describe,
    fill_references,
    find_names,
    shorten,
)


def asked(view: RequestView, hop: int, known: Mapping[int, str] | None = None) -> str:
    """Return a hop's question (from 0) with known answers, or descriptions, in place of its references."""
    found = dict(view.found if known is None else known)
    if view.knows_unaided():
        found = {at: each.answer for at, each in enumerate(view.gold.hops)} | found
    needs = view.gold.hops[hop].needs()
    values = {need: found.get(need - 1) or describe(view.gold.nested(need - 1)) for need in needs}
    return shorten(fill_references(view.gold.hops[hop].question, values))


def off_course(view: RequestView) -> str:
    """Return a wrong sub-question: something unrelated about one of the question's names."""
    subjects = find_names(view.gold.question) or [view.gold.question.rstrip("?")]
    return shorten(f"Which awards and honours were given to {view.rng('off course').choice(subjects)}?")


def _freely(view: RequestView, question: str) -> str:
    """Return the question, rephrased at the configured rate."""
    rng = view.rng("freely")
    return view.rephrase(question, rng.randint(1, 2)) if rng.random() < view.simulation.rephrase else question


def plan(view: RequestView) -> planning.Plan:
    """PLAN: the hops without an answer."""
    hops = [] if WHOLE in view.found else [hop for hop in range(len(view.gold.hops)) if hop not in view.found]
    places = {hop: at for at, hop in enumerate(hops, start=1)}
    wrong = view.rng("which").choice(hops) if hops and view.errs("wrong-question") else None
    steps = [
        planning.PlanStep(
            thought=view.thought(hop),
            question=off_course(view) if hop == wrong else asked(view, hop),
            needs=[places[need - 1] for need in view.gold.hops[hop].needs() if need - 1 in places],
        )
        for hop in hops
    ]
    return planning.Plan(steps=steps or [planning.PlanStep(question=shorten(view.gold.question), action="Answer")])


def plan_in_order(view: RequestView) -> Output:
    """PLAN_IN_ORDER: the same plan without dependencies."""
    steps = plan(view).steps
    in_order = [
        planning.OrderedStep(thought=each.thought, question=each.question, action=each.action) for each in steps
    ]
    return planning.OrderedPlan(steps=in_order)


def next_query(view: RequestView) -> Output:
    """NEXT."""
    query = next_question(view, _queries(view))
    plan = planning.SUBQ if query else planning.SUFFICIENT
    return planning.Next.model_validate({"plan": plan, "query": query})


def next_with_finding(view: RequestView) -> Output:
    """NEXT_WITH_FINDING: also the finding of the latest sub-query, or the facts toward the answer."""
    query, finding, facts = next_question(view, _queries(view)), "", list[int]()
    latest = view.target(view.given["queries"][-1]["text"]) if view.given["queries"] else None
    if latest == WHOLE:
        facts = fact_numbers(view, range(len(view.gold.hops)))
        finding = view.value(WHOLE) or ""
    elif latest is not None and view.holds(latest):
        facts, finding = fact_numbers(view, range(latest, latest + 1)), view.gold.hops[latest].answer
    plan = planning.SUBQ if query else planning.SUFFICIENT
    return planning.NextWithFinding.model_validate(
        {"plan": plan, "query": query, "finding": finding[:200], "facts": facts}
    )


_TRIES = 2
"""Rephrasings of a question before it is given up."""


def _queries(view: RequestView) -> list[str]:
    return [str(each["text"]) for each in view.given["queries"]]


def next_question(view: RequestView, asked_before: Iterable[str]) -> str:
    """Return the first missing hop's question; empty if none is missing, or if it was asked without success."""
    if view.value(WHOLE) is not None:
        return ""
    if view.errs("wrong-question"):
        return off_course(view)
    before = [comparison_key(each) for each in asked_before]
    known = _held(view)
    for hop in view.missing():
        ways = [view.rephrase(asked(view, hop, known), way) for way in range(_TRIES)]
        if new := [way for way in ways if comparison_key(way) not in before]:
            return new[0]
    return ""


def follow_up(view: RequestView) -> Output:
    """FOLLOW_UP: the first missing hop, otherwise the answer."""
    question = next_question(view, [asked for asked, _ in view.steps])
    if question:
        return planning.FollowUp(follow_up="Yes", question=question)
    return planning.FollowUp(follow_up="No", answer=view.value(WHOLE) or "")


def think(view: RequestView) -> str:
    """THINK: each known hop once, one at a time; then the answer, or the missing question."""
    before = [comparison_key(each).rstrip(".") for each in view.given["thoughts"]]
    known = [view.statement(hop) for hop in range(len(view.gold.hops)) if view.holds(hop)]
    if new := [line for line in known if not any(comparison_key(line).startswith(each) for each in before)]:
        return new[0]
    if answer := find_answer(view, view.question).answer:
        return f"So the answer is: {answer}."
    return next_question(view, view.given["thoughts"]) or "The rest is not told."


def act(view: RequestView) -> Output:
    """ACT: a search for the first missing hop; otherwise an answer."""
    query = next_question(view, view.given["searches"])
    if query:
        return planning.Action(action="search", query=query)
    found = find_answer(view, view.question)
    return planning.Action(action="answer", answer=found.answer, citations=[*found.quotes])


def act_with_tools(view: RequestView) -> Output:
    """ACT_WITH_TOOLS: read on in the document of a missing hop, search by meaning, then by words; or answer."""
    steps = [str(step) for step in view.given["searches"]]
    before = [step.partition(": ")[2] for step in steps]
    query = next_question(view, before)
    if not query:
        found = find_answer(view, view.question)
        return planning.ToolAction(action="answer", answer=found.answer, citations=[*found.quotes])
    titles = {view.gold.hops[hop].title for hop in view.missing()}
    for at, source in enumerate(view.sources, start=1):
        if source["title"] in titles and f"read: {source['title']} [{at}]" not in steps:
            return planning.ToolAction(action="read", source=at)
    is_retry = view.target(query) in {view.target(each) for each in before}
    return planning.ToolAction(action="keyword" if is_retry else "semantic", query=query)


def continue_transcript(view: RequestView, *, format: Format) -> str:
    """SEARCH_R1, STEP_SEARCH and CORAG: what is known, then a search for the first missing hop, or the answer."""
    tags = TAGS[format]
    if view.given["last"]:
        return f"{find_answer(view, view.question).answer}</{tags.answer}>"
    known = " ".join(view.statement(hop) for hop in range(len(view.gold.hops)) if view.holds(hop))
    name = "subanswer" if format == "corag" else "think"
    thought = f"<{name}>{known}</{name}>" if known or format != "corag" else ""
    query = next_question(view, view.given["searches"])
    action = f"<{tags.query}>{query}</{tags.query}>"
    if not query:
        action = f"<{tags.answer}>{find_answer(view, view.question).answer}</{tags.answer}>"
    return f"{thought}\n{action}"


def expand(view: RequestView) -> Output:
    """EXPAND: the first hop that neither the steps nor earlier answers cover; sometimes a later one.

    If the answer follows from all hops together, the question itself is the last step.
    """
    targets = (view.target(step) for step in view.given["steps"])
    covered = {target for target in targets if target is not None} | set(view.found)
    left = [hop for hop in range(len(view.gold.hops)) if hop not in covered]
    if view.errs("wrong-question"):
        return planning.NextStep(step=off_course(view), final=len(left) <= 1)
    if not left or WHOLE in covered:
        return planning.NextStep(step=_freely(view, shorten(view.gold.question)), final=True)
    rng = view.rng("order")
    hop = rng.choice(left) if rng.random() < view.simulation.reorder else left[0]
    last = view.gold.is_chain() and hop == len(view.gold.hops) - 1
    return planning.NextStep(step=_freely(view, asked(view, hop)), final=last)


def fuse(view: RequestView) -> Output:
    """FUSE: one of the steps that ask for the same hop; different ones are joined."""
    steps: list[str] = view.given["steps"]
    apart = {view.target(step): step for step in reversed(steps)}
    if view.errs("wrong-question"):
        return planning.Fused(step=off_course(view))
    return planning.Fused(step=" ".join(reversed(apart.values()))[:300])


def rewrite(view: RequestView) -> Output:
    """REWRITE: the question in other words."""
    question = off_course(view) if view.errs("wrong-question") else view.rephrase(view.gold.question, 1)
    return planning.Rewritten(question=question)


def refine(view: RequestView) -> Output:
    """REFINE: the hop's question with the answers found; the whole question is rephrased."""
    planned = str(view.given["question"])
    target = view.target(planned)
    if view.errs("wrong-question"):
        return planning.Refined(question=off_course(view))
    if target is None:
        return planning.Refined(question=planned)
    if target == WHOLE:
        return planning.Refined(question=view.rephrase(planned, 1))
    return planning.Refined(question=asked(view, target))


def requery(view: RequestView) -> Output:
    """REQUERY: the first missing hop, with the known answers in it."""
    known = _held(view)
    missing = view.missing()
    if view.errs("wrong-question"):
        return reasoning.Requery(query=off_course(view))
    if not missing:
        return reasoning.Requery(query=view.rephrase(view.gold.question, 1))
    return reasoning.Requery(query=asked(view, missing[0], known))


def _held(view: RequestView) -> dict[int, str]:
    """Return the right answers that the model has, by hop."""
    return {hop: known.answer for hop, known in enumerate(view.gold.hops) if view.holds(hop)}


def entities(view: RequestView) -> Output:
    """ENTITIES."""
    found = find_names(view.gold.question) or [view.gold.question.rstrip("?")]
    return reasoning.Entities(entities=[name[:80] for name in found][: reasoning.MAX_ENTITIES])


def names_in(view: RequestView, text: str, most: int, length: int) -> list[str]:
    """Return the first names in a text, cut to a length; none if the role misses them."""
    return [] if view.errs("missed") else [name[:length] for name in find_names(text)][:most]


def names(view: RequestView) -> Output:
    """EXTRACT_NAMES."""
    return reading.Names(names=names_in(view, str(view.given["text"]), reading.MAX_NAMES, 80))


def name_entities(view: RequestView) -> Output:
    """NAME_ENTITIES."""
    found = names_in(view, view.question, hybrid.MAX_ENTITIES, 120)
    return hybrid.Entities(entities=[hybrid.Entity(name=name) for name in found])


def choose_calls(view: RequestView) -> Output:
    """CHOOSE_CALLS: the entities by their names."""
    wanted = [
        hybrid.Argument(name="entity", value=name) for name in names_in(view, view.question, hybrid.MAX_ENTITIES, 120)
    ]
    return hybrid.Calls(calls=[hybrid.Call(function="open_get_entity", arguments=[each]) for each in wanted])
