"""The roles that judge what others say, or what is asked: reviewer, evaluator, judge and classifier."""

from collections.abc import Sequence

from sleuth.agents import reviewer
from sleuth.agents.citation import Quote
from sleuth.agents.classifier import CHANGING, STATIC
from sleuth.agents.simulation.answering import told
from sleuth.agents.simulation.gold import WHOLE
from sleuth.agents.simulation.said import Said, judged, said
from sleuth.agents.simulation.scene import Scene
from sleuth.agents.simulation.wording import says
from sleuth.tools.attributes import DOMAINS
from sleuth.tools.text import words


def review_step(scene: Scene) -> Said:
    """REVIEW_STEP: what the sources tell passes, or is put right; without them the question is asked otherwise."""
    return said(_verdict(scene, looks_back=False))


def review(scene: Scene) -> Said:
    """REVIEW: also blames an earlier step where the sources tell that its answer is wrong."""
    return said(_verdict(scene, looks_back=True))


def _verdict(scene: Scene, *, looks_back: bool) -> reviewer.StepReview:
    drafted, found = str(scene.given["answer"]), told(scene, scene.question)
    if found.answer and _same(drafted, found.answer):
        return reviewer.Review(status="PASS")
    if drafted and scene.errs("flattering"):
        return reviewer.Review(status="PASS")
    if found.answer and found.quotes:
        quotes = [Quote(source=each.source, quote=each.quote) for each in found.quotes]
        return reviewer.Review(status="REVISED", answer=found.answer, citations=quotes)
    blamed = _blamed(scene) if looks_back else None
    if blamed is not None:
        step, question = blamed
        return reviewer.Review(status="UNCONFIDENT", question=question, earlier_step=step)
    return reviewer.Review(status="UNCONFIDENT", question=_anew(scene))


def _anew(scene: Scene) -> str:
    again = scene.otherwise(scene.question, 1)
    if words(again) != words(scene.question):
        return again
    target = scene.target(scene.question) if scene.simulation.teaching else None
    return scene.otherwise(scene.question, 2) if target in (None, WHOLE) else scene.gold.asked(target)


def _blamed(scene: Scene) -> tuple[int, str] | None:
    """The first earlier step (from 1) whose answer the sources contradict, and its question."""
    for at, (question, answer) in enumerate(scene.steps, start=1):
        target = scene.target(question)
        if target is None or target == WHOLE or not scene.shown(target):
            continue
        if not says(answer, scene.gold.hops[target].answer):
            return at, question
    return None


def _same(one: str, other: str) -> bool:
    return words(one) == words(other) or says(one, other) or says(other, one)


def consistency(scene: Scene) -> Said:
    """CONSISTENCY."""
    return judged(scene, true=_same(scene.given["answer"], scene.given["second"]))


def evidence(scene: Scene) -> Said:
    """EVIDENCE: it tells a hop that matters."""
    return judged(scene, true=_matters(scene, _told_by(scene)))


def relevance(scene: Scene) -> Said:
    """RELEVANCE: the same of a statement, together with what is known."""
    hops = [hop for hop in range(len(scene.gold.hops)) if scene.quote(hop, "", scene.given["claim"])]
    return judged(scene, true=_matters(scene, hops))


def attribution(scene: Scene) -> Said:
    """ATTRIBUTION: the sources tell the same hop, or have the statement word for word."""
    claim = str(scene.given["claim"])
    verbatim = any(words(claim).strip(" .") in words(source["text"]) for source in scene.sources)
    told_here = any(scene.quote(hop, "", claim) for hop in _told_by(scene))
    return judged(scene, true=verbatim or told_here)


def support(scene: Scene) -> Said:
    """SUPPORT: what is cited tells the same answer to the whole question."""
    found = scene.answer_to(scene.question)
    return judged(scene, true=found is not None and _same(scene.given["answer"], found))


def _told_by(scene: Scene) -> list[int]:
    return [hop for hop in range(len(scene.gold.hops)) if scene.shown(hop)]


def _matters(scene: Scene, hops: list[int]) -> bool | None:
    """Whether one can see that hops' answers matter: who they are about, or they themselves, are named or known.

    Where not, it cannot be decided: the question's own words may be about somebody who is not named in it.
    """
    if not hops:
        return False
    return True if any(_in_reach(scene, hop) for hop in hops) else None


def _in_reach(scene: Scene, hop: int) -> bool:
    query, known = str(scene.given["query"]), scene.gold.hops[hop]
    named = scene.named(hop, query)
    return says(query, known.answer) or all(need in named or scene.holds(need - 1) for need in known.needs())


def judge(scene: Scene) -> Said:
    """JUDGE: the answer is one of the references, word for word; it never errs, and errs on the side of incorrect."""
    right = {words(answer).strip(" .") for answer in scene.given["answers"]}
    return Said(text="correct" if words(str(scene.given["said"])).strip(" .") in right else "incorrect")


def domain(scene: Scene) -> Said:
    """DOMAIN: the gold's, or open where it has none."""
    return filed(scene, scene.gold.domain or "open", DOMAINS)


def dynamic(scene: Scene) -> Said:
    """DYNAMIC: as the gold says."""
    return filed(scene, CHANGING if scene.gold.dynamic else STATIC, (STATIC, CHANGING))


def filed(scene: Scene, right: str, choices: Sequence[str]) -> Said:
    """The right label, or where the role errs one of the others."""
    others = [choice for choice in choices if choice != right]
    return Said(text=scene.chance("other").choice(others) if scene.errs("misfiled") else right)
