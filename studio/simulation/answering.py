"""The roles that answer from what they are shown: reader, drafter, answerer, reasoner, integrator, verifier."""

import re
from dataclasses import dataclass

from sleuth.agents.formatting import MOST, Quote
from sleuth.agents.roles.reading import answerer, drafter, reader
from sleuth.agents.roles.reasoning import path_answerer as integrator
from sleuth.agents.roles.reasoning import reasoner
from sleuth.studio.simulation.gold import WHOLE
from sleuth.studio.simulation.reply import SimulatedReply, plain_reply, structured
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.wording import says
from sleuth.tools.text import comparison_key, sentences

_NUMBERED = re.compile(r"^\[(\d+)\]", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundAnswer:
    """An answer, empty where there is none, and where it stands."""

    answer: str
    quotes: tuple[Quote, ...] = ()


def find_answer(view: RequestView, question: str) -> FoundAnswer:
    """The answer from what was shown and found; at the rates of inventions and guesses something else."""
    value = view.answer_to(question)
    if view.errs("invented") or (value is None and view.errs("guessed")):
        invented = view.guess(question)
        return FoundAnswer(answer=invented, quotes=_naming(view, invented))
    if value is None:
        return FoundAnswer(answer="")
    return FoundAnswer(answer=_worded(view, value), quotes=_quotes(view, question, value))


def _worded(view: RequestView, value: str) -> str:
    """The same answer, now and then in other words where the reply is drawn at random."""
    freely = view.request.sampling.temperature >= 0.5 and view.chance("worded").random() < view.simulation.rephrase
    return f"It is {value}" if freely and comparison_key(value) not in ("yes", "no") else value


def _quotes(view: RequestView, question: str, value: str) -> tuple[Quote, ...]:
    """What shows the answer to a hop; for the question itself what shows each of its hops, the last first."""
    target = view.target(question)
    hops = range(len(view.gold.hops) - 1, -1, -1) if target in (WHOLE, None) else [target]
    shown = [quoted for hop in hops if hop is not None and (quoted := view.shown(hop))]
    quotes = tuple(Quote(source=each.source, quote=each.quote) for each in shown[:MOST])
    return quotes or _naming(view, value)


def _naming(view: RequestView, value: str) -> tuple[Quote, ...]:
    """The first sentence shown that has the value in it."""
    for at, source in enumerate(view.sources, start=1):
        for unit in sentences(source["text"]):
            if says(unit, value):
                return (Quote(source=at, quote=view.excerpt(unit, value)),)
    return ()


def read(view: RequestView) -> SimulatedReply:
    """READ."""
    found = find_answer(view, view.question)
    return structured(reader.Reading(answer=found.answer, citations=[*found.quotes], answerable=bool(found.answer)))


def draft(view: RequestView) -> SimulatedReply:
    """DRAFT."""
    found = find_answer(view, view.question)
    return structured(drafter.Draft(answer=found.answer, citations=[*found.quotes]))


def conclude(view: RequestView) -> SimulatedReply:
    """CONCLUDE."""
    return structured(drafter.Conclusion(answer=find_answer(view, view.question).answer))


def answer(view: RequestView) -> SimulatedReply:
    """ANSWER: from the trajectory alone."""
    found = find_answer(view, view.gold.question)
    return structured(answerer.Final(known=bool(found.answer), answer=found.answer))


def from_facts(view: RequestView) -> SimulatedReply:
    """ANSWER_FROM_FACTS: always an answer, which is a guess where the facts do not tell."""
    found = find_answer(view, view.gold.question)
    known = bool(found.answer)
    guess = found.answer or ("" if view.simulation.teaching else view.decoy(view.gold.answer))
    facts = fact_numbers(view, range(len(view.gold.hops))) if known else []
    return structured(answerer.FromFacts(facts=facts, answer=guess, known=known))


def fact_numbers(view: RequestView, hops: range) -> list[int]:
    """The numbers of the facts that tell hops, the last hop's first."""
    numbers: list[int] = []
    for hop in reversed(hops):
        quoted = view.shown(hop)
        if quoted:
            numbers += _numbers_in(view, view.sources[quoted.source - 1]["text"], hop)
    return list(dict.fromkeys(numbers))[:6]


def _numbers_in(view: RequestView, block: str, hop: int) -> list[int]:
    """Which of several numbered facts it is."""
    marks = [*_NUMBERED.finditer(block)]
    ends = [mark.start() for mark in marks[1:]] + [len(block)]
    parts = [(int(mark.group(1)), block[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    return [number for number, text in parts if view.quote(hop, "", text)][:1]


def _unaided(view: RequestView) -> str:
    return view.gold.answer if view.knows_unaided() else ""


def unaided(view: RequestView) -> SimulatedReply:
    """ANSWER_UNAIDED: a guess where it does not know."""
    known = _unaided(view)
    return structured(answerer.Unaided(answer=known or view.decoy(view.gold.answer), known=bool(known)))


def from_memory(view: RequestView) -> SimulatedReply:
    """ANSWER_FROM_MEMORY: what was handed over, else what it knows, else a guess."""
    known = find_answer(view, view.question).answer or _unaided(view)
    return structured(answerer.Unaided(answer=known or view.decoy(view.gold.answer), known=bool(known)))


def reason(view: RequestView) -> SimulatedReply:
    """REASON: the hops known in their order, then what is missing."""
    found = find_answer(view, view.question)
    hops = range(len(view.gold.hops))
    lines = [view.statement(hop) for hop in hops if view.holds(hop)]
    lacks = "" if found.answer else "What else the question needs is not said."
    text = " ".join([*lines, lacks]).strip()[:800]
    return structured(reasoner.Reasoned(reason=text, citations=[*found.quotes], answer=found.answer))


def monitor(view: RequestView) -> SimulatedReply:
    """MONITOR."""
    return structured(reasoner.Direct(answer=find_answer(view, view.question).answer))


def recall(view: RequestView) -> SimulatedReply:
    """RECALL."""
    return structured(reasoner.Recalled(reason="" if _unaided(view) else "I do not know it.", answer=_unaided(view)))


def guess(view: RequestView) -> SimulatedReply:
    """GUESS."""
    return structured(reasoner.Direct(answer=_unaided(view)))


def take_step(view: RequestView) -> SimulatedReply:
    """TAKE_STEP."""
    return structured(integrator.Result(answer=find_answer(view, view.question).answer))


def take_last_step(view: RequestView) -> SimulatedReply:
    """TAKE_LAST_STEP: what follows for the question."""
    return structured(integrator.Result(answer=find_answer(view, view.given["question"]).answer))


def take_path(view: RequestView) -> SimulatedReply:
    """TAKE_PATH: where the path ends is what it answers."""
    return structured(integrator.Result(answer=find_answer(view, view.given["question"]).answer))


def integrate(view: RequestView) -> SimulatedReply:
    """INTEGRATE: answers that are the same once, others side by side."""
    answers = [each["answer"] for each in view.given["answers"]]
    apart: dict[str, str] = {}
    for each in answers:
        apart.setdefault(comparison_key(each).removeprefix("it is ").removeprefix("the "), each)
    return structured(integrator.Integrated(answer=" or ".join(apart.values())[:600]))


def verify(view: RequestView) -> SimulatedReply:
    """VERIFY: sure where the sources tell the answer; where they do not, a guess that sounds unsure as a rule."""
    value = view.answer_to(view.question)
    if value is not None:
        return plain_reply(view, value, supported=True)
    overconfident = view.errs("overconfident")
    return plain_reply(view, view.guess(view.question), supported=overconfident)
