"""The roles that answer from what they are shown: reader, drafter, answerer, reasoner, integrator, verifier."""

import re
from dataclasses import dataclass

from sleuth.agents import answerer, drafter, integrator, reader, reasoner
from sleuth.agents.citation import MOST, Quote
from sleuth.agents.simulation.gold import WHOLE
from sleuth.agents.simulation.said import Said, said, sure
from sleuth.agents.simulation.scene import Scene
from sleuth.agents.simulation.wording import says
from sleuth.tools.text import sentences, words

_NUMBERED = re.compile(r"^\[(\d+)\]", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """An answer, empty where there is none, and where it stands."""

    answer: str
    quotes: tuple[Quote, ...] = ()


def told(scene: Scene, question: str) -> Told:
    """The answer from what was shown and found; at the rates of inventions and guesses something else."""
    value = scene.answer_to(question)
    if scene.errs("invented") or (value is None and scene.errs("guessed")):
        invented = scene.guess(question)
        return Told(answer=invented, quotes=_naming(scene, invented))
    if value is None:
        return Told(answer="")
    return Told(answer=_worded(scene, value), quotes=_quotes(scene, question, value))


def _worded(scene: Scene, value: str) -> str:
    """The same answer, now and then in other words where the reply is drawn at random."""
    freely = scene.request.sampling.temperature >= 0.5 and scene.chance("worded").random() < scene.simulation.rephrase
    return f"It is {value}" if freely and words(value) not in ("yes", "no") else value


def _quotes(scene: Scene, question: str, value: str) -> tuple[Quote, ...]:
    """What shows the answer to a hop; for the question itself what shows each of its hops, the last first."""
    target = scene.target(question)
    hops = range(len(scene.gold.hops) - 1, -1, -1) if target in (WHOLE, None) else [target]
    shown = [quoted for hop in hops if hop is not None and (quoted := scene.shown(hop))]
    quotes = tuple(Quote(source=each.source, quote=each.quote) for each in shown[:MOST])
    return quotes or _naming(scene, value)


def _naming(scene: Scene, value: str) -> tuple[Quote, ...]:
    """The first sentence shown that has the value in it."""
    for at, source in enumerate(scene.sources, start=1):
        for unit in sentences(source["text"]):
            if says(unit, value):
                return (Quote(source=at, quote=scene.excerpt(unit, value)),)
    return ()


def read(scene: Scene) -> Said:
    """READ."""
    found = told(scene, scene.question)
    return said(reader.Reading(answer=found.answer, citations=[*found.quotes], answerable=bool(found.answer)))


def draft(scene: Scene) -> Said:
    """DRAFT."""
    found = told(scene, scene.question)
    return said(drafter.Draft(answer=found.answer, citations=[*found.quotes]))


def conclude(scene: Scene) -> Said:
    """CONCLUDE."""
    return said(drafter.Conclusion(answer=told(scene, scene.question).answer))


def answer(scene: Scene) -> Said:
    """ANSWER: from the trajectory alone."""
    found = told(scene, scene.gold.question)
    return said(answerer.Final(known=bool(found.answer), answer=found.answer))


def from_facts(scene: Scene) -> Said:
    """ANSWER_FROM_FACTS: always an answer, which is a guess where the facts do not tell."""
    found = told(scene, scene.gold.question)
    known = bool(found.answer)
    guess = found.answer or ("" if scene.simulation.teaching else scene.decoy(scene.gold.answer))
    facts = fact_numbers(scene, range(len(scene.gold.hops))) if known else []
    return said(answerer.FromFacts(facts=facts, answer=guess, known=known))


def fact_numbers(scene: Scene, hops: range) -> list[int]:
    """The numbers of the facts that tell hops, the last hop's first."""
    numbers: list[int] = []
    for hop in reversed(hops):
        quoted = scene.shown(hop)
        if quoted:
            numbers += _numbers_in(scene, scene.sources[quoted.source - 1]["text"], hop)
    return list(dict.fromkeys(numbers))[:6]


def _numbers_in(scene: Scene, block: str, hop: int) -> list[int]:
    """Which of several numbered facts it is."""
    marks = [*_NUMBERED.finditer(block)]
    ends = [mark.start() for mark in marks[1:]] + [len(block)]
    parts = [(int(mark.group(1)), block[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    return [number for number, text in parts if scene.quote(hop, "", text)][:1]


def _unaided(scene: Scene) -> str:
    return scene.gold.answer if scene.knows_unaided() else ""


def unaided(scene: Scene) -> Said:
    """ANSWER_UNAIDED: a guess where it does not know."""
    known = _unaided(scene)
    return said(answerer.Unaided(answer=known or scene.decoy(scene.gold.answer), known=bool(known)))


def from_memory(scene: Scene) -> Said:
    """ANSWER_FROM_MEMORY: what was handed over, else what it knows, else a guess."""
    known = told(scene, scene.question).answer or _unaided(scene)
    return said(answerer.Unaided(answer=known or scene.decoy(scene.gold.answer), known=bool(known)))


def reason(scene: Scene) -> Said:
    """REASON: the hops known in their order, then what is missing."""
    found = told(scene, scene.question)
    hops = range(len(scene.gold.hops))
    lines = [scene.statement(hop) for hop in hops if scene.holds(hop)]
    lacks = "" if found.answer else "What else the question needs is not said."
    text = " ".join([*lines, lacks]).strip()[:800]
    return said(reasoner.Reasoned(reason=text, citations=[*found.quotes], answer=found.answer))


def monitor(scene: Scene) -> Said:
    """MONITOR."""
    return said(reasoner.Direct(answer=told(scene, scene.question).answer))


def recall(scene: Scene) -> Said:
    """RECALL."""
    return said(reasoner.Recalled(reason="" if _unaided(scene) else "I do not know it.", answer=_unaided(scene)))


def guess(scene: Scene) -> Said:
    """GUESS."""
    return said(reasoner.Direct(answer=_unaided(scene)))


def take_step(scene: Scene) -> Said:
    """TAKE_STEP."""
    return said(integrator.Result(answer=told(scene, scene.question).answer))


def take_last_step(scene: Scene) -> Said:
    """TAKE_LAST_STEP: what follows for the question."""
    return said(integrator.Result(answer=told(scene, scene.given["question"]).answer))


def take_path(scene: Scene) -> Said:
    """TAKE_PATH: where the path ends is what it answers."""
    return said(integrator.Result(answer=told(scene, scene.given["question"]).answer))


def integrate(scene: Scene) -> Said:
    """INTEGRATE: answers that are the same once, others side by side."""
    answers = [each["answer"] for each in scene.given["answers"]]
    apart: dict[str, str] = {}
    for each in answers:
        apart.setdefault(words(each).removeprefix("it is ").removeprefix("the "), each)
    return said(integrator.Integrated(answer=" or ".join(apart.values())[:600]))


def verify(scene: Scene) -> Said:
    """VERIFY: sure where the sources tell the answer; where they do not, a guess that sounds unsure as a rule."""
    value = scene.answer_to(scene.question)
    if value is not None:
        return sure(scene, value, supported=True)
    overconfident = scene.errs("overconfident")
    return sure(scene, scene.guess(scene.question), supported=overconfident)
