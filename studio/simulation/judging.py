"""The roles that judge what others say, or what is asked: reviewer, evaluator, judge and classifier."""

from collections.abc import Sequence

from sleuth.agents.formatting import Quote
from sleuth.agents.roles.judging import CHANGING, STATIC, reviewer
from sleuth.studio.simulation.answering import find_answer
from sleuth.studio.simulation.gold import WHOLE
from sleuth.studio.simulation.reply import SimulatedReply, structured, yes_or_no
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.wording import says
from sleuth.tools.sources.question_attributes import DOMAINS
from sleuth.tools.text import comparison_key


def review_step(view: RequestView) -> SimulatedReply:
    """REVIEW_STEP: what the sources tell passes, or is put right; without them the question is asked otherwise."""
    return structured(_verdict(view, looks_back=False))


def review(view: RequestView) -> SimulatedReply:
    """REVIEW: also blames an earlier step where the sources tell that its answer is wrong."""
    return structured(_verdict(view, looks_back=True))


def _verdict(view: RequestView, *, looks_back: bool) -> reviewer.StepReview:
    drafted, found = str(view.given["answer"]), find_answer(view, view.question)
    if found.answer and _same(drafted, found.answer):
        return reviewer.Review(status="PASS")
    if drafted and view.errs("flattering"):
        return reviewer.Review(status="PASS")
    if found.answer and found.quotes:
        quotes = [Quote(source=each.source, quote=each.quote) for each in found.quotes]
        return reviewer.Review(status="REVISED", answer=found.answer, citations=quotes)
    blamed = _blamed(view) if looks_back else None
    if blamed is not None:
        step, question = blamed
        return reviewer.Review(status="UNCONFIDENT", question=question, earlier_step=step)
    return reviewer.Review(status="UNCONFIDENT", question=_anew(view))


def _anew(view: RequestView) -> str:
    again = view.otherwise(view.question, 1)
    if comparison_key(again) != comparison_key(view.question):
        return again
    target = view.target(view.question) if view.simulation.teaching else None
    return view.otherwise(view.question, 2) if target in (None, WHOLE) else view.gold.asked(target)


def _blamed(view: RequestView) -> tuple[int, str] | None:
    """The first earlier step (from 1) whose answer the sources contradict, and its question."""
    for at, (question, answer) in enumerate(view.steps, start=1):
        target = view.target(question)
        if target is None or target == WHOLE or not view.shown(target):
            continue
        if not says(answer, view.gold.hops[target].answer):
            return at, question
    return None


def _same(one: str, other: str) -> bool:
    return comparison_key(one) == comparison_key(other) or says(one, other) or says(other, one)


def consistency(view: RequestView) -> SimulatedReply:
    """CONSISTENCY."""
    return yes_or_no(view, true=_same(view.given["answer"], view.given["second"]))


def evidence(view: RequestView) -> SimulatedReply:
    """EVIDENCE: it tells a hop that matters."""
    return yes_or_no(view, true=_matters(view, _told_by(view)))


def relevance(view: RequestView) -> SimulatedReply:
    """RELEVANCE: the same of a statement, together with what is known."""
    hops = [hop for hop in range(len(view.gold.hops)) if view.quote(hop, "", view.given["claim"])]
    return yes_or_no(view, true=_matters(view, hops))


def attribution(view: RequestView) -> SimulatedReply:
    """ATTRIBUTION: the sources tell the same hop, or have the statement word for word."""
    claim = str(view.given["claim"])
    verbatim = any(comparison_key(claim).strip(" .") in comparison_key(source["text"]) for source in view.sources)
    told_here = any(view.quote(hop, "", claim) for hop in _told_by(view))
    return yes_or_no(view, true=verbatim or told_here)


def support(view: RequestView) -> SimulatedReply:
    """SUPPORT: what is cited tells the same answer to the whole question."""
    found = view.answer_to(view.question)
    return yes_or_no(view, true=found is not None and _same(view.given["answer"], found))


def _told_by(view: RequestView) -> list[int]:
    return [hop for hop in range(len(view.gold.hops)) if view.shown(hop)]


def _matters(view: RequestView, hops: list[int]) -> bool | None:
    """Whether one can see that hops' answers matter: who they are about, or they themselves, are named or known.

    Where not, it cannot be decided: the question's own words may be about somebody who is not named in it.
    """
    if not hops:
        return False
    return True if any(_in_reach(view, hop) for hop in hops) else None


def _in_reach(view: RequestView, hop: int) -> bool:
    query, known = str(view.given["query"]), view.gold.hops[hop]
    named = view.named(hop, query)
    return says(query, known.answer) or all(need in named or view.holds(need - 1) for need in known.needs())


def judge(view: RequestView) -> SimulatedReply:
    """JUDGE: the answer is one of the references, word for word; it never errs, and errs on the side of incorrect."""
    right = {comparison_key(answer).strip(" .") for answer in view.given["answers"]}
    return SimulatedReply(
        text="correct" if comparison_key(str(view.given["said"])).strip(" .") in right else "incorrect"
    )


def domain(view: RequestView) -> SimulatedReply:
    """DOMAIN: the gold's, or open where it has none."""
    return filed(view, view.gold.domain or "open", DOMAINS)


def dynamic(view: RequestView) -> SimulatedReply:
    """DYNAMIC: as the gold says."""
    return filed(view, CHANGING if view.gold.dynamic else STATIC, (STATIC, CHANGING))


def filed(view: RequestView, right: str, choices: Sequence[str]) -> SimulatedReply:
    """The right label, or where the role errs one of the others."""
    others = [choice for choice in choices if choice != right]
    return SimulatedReply(text=view.chance("other").choice(others) if view.errs("misfiled") else right)
