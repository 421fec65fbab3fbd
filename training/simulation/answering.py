"""Simulated roles that answer, from the reader to the verifier, or that condense passages."""

import re
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from sleuth.agents.formatting import MAX_CITATIONS, Quote
from sleuth.agents.role import Output
from sleuth.agents.roles import hybrid, reading, reasoning
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.text.tokenization import sentences
from training.simulation.gold import WHOLE
from training.simulation.request_view import RequestView
from training.simulation.wording import content_words, excerpt, fill_references, find_names, mentions

_SUMMARY = 600
"""Characters of a summary."""

_RELATED = 2
"""Words that a source must share with a step to be summarized, helpful or not."""

_MENTIONS = 6
"""Facts about names in a passage, in addition to those that matter: models extract irrelevant facts too."""

_NUMBERED = re.compile(r"^\[(\d+)\]", re.MULTILINE)


class FoundAnswer(NamedTuple):
    """An answer, empty where there is none, and its citations."""

    answer: str
    quotes: tuple[Quote, ...] = ()


def find_answer(view: RequestView, question: str) -> FoundAnswer:
    """Return the answer from the sources and earlier steps, or a wrong one at the rates of inventions and guesses."""
    value = view.answer_to(question)
    if view.errs("invented") or (value is None and view.errs("guessed")):
        invented = view.guess(question)
        return FoundAnswer(answer=invented, quotes=_first_mention(view, invented))
    if value is None:
        return FoundAnswer(answer="")
    freely = view.request.sampling.temperature >= 0.5 and view.rng("worded").random() < view.simulation.rephrase
    answer = f"It is {value}" if freely and comparison_key(value) not in ("yes", "no") else value
    return FoundAnswer(answer=answer, quotes=_quotes(view, question, value))


def _quotes(view: RequestView, question: str, value: str) -> tuple[Quote, ...]:
    """Return the evidence of the hop that is asked for; of the whole question that of each hop, the last first."""
    target = view.target(question)
    hops = range(len(view.gold.hops) - 1, -1, -1) if target in (WHOLE, None) else [target]
    shown = [quoted for hop in hops if hop is not None and (quoted := view.shown(hop))]
    return tuple(shown[:MAX_CITATIONS]) or _first_mention(view, value)


def _first_mention(view: RequestView, value: str) -> tuple[Quote, ...]:
    """Return the first sentence of the sources that contains the value."""
    for at, source in enumerate(view.sources, start=1):
        for sentence in sentences(source["text"]):
            if mentions(sentence, value):
                return (Quote(source=at, quote=view.excerpt(sentence, value)),)
    return ()


def answer_as(
    output: type[Output],
    asked: Callable[[RequestView], str] = attrgetter("question"),
    *,
    otherwise: Callable[[RequestView], str] = lambda _: "",
) -> Callable[[RequestView], Output]:
    """Return a handler that replies with the answer found.

    Args:
        output: the type of the reply; citations and flags are set if it has them.
        asked: returns the question.
        otherwise: returns the answer where none is found.
    """

    def handle(view: RequestView) -> Output:
        found = find_answer(view, asked(view))
        known = bool(found.answer)
        answer = found.answer or otherwise(view)
        fields = {"answer": answer, "citations": [*found.quotes], "known": known, "answerable": known}
        return output.model_validate(fields)

    return handle


answer_or_admit = partial(answer_as, asked=attrgetter("gold.question"), otherwise=lambda _: "I don't know")
"""Like `answer_as`, for the roles of the hybrid method, which may admit that the references lack the answer."""


def doubt(view: RequestView) -> Output:
    """RESOLVE: a premise is false if each hop has an answer and the question has none, once all hops are shown."""
    if view.gold.contradicted() and all(view.holds(hop) for hop in range(len(view.gold.hops))):
        return hybrid.Doubted(answer="Invalid question", citations=[], false_premise=True)
    return answer_or_admit(hybrid.Doubted)(view)


def from_facts(view: RequestView) -> reading.FromFacts:
    """ANSWER_FROM_FACTS: a guess where the facts do not contain the answer."""
    found = find_answer(view, view.gold.question)
    known = bool(found.answer)
    guess = found.answer or wrong_answer(view)
    facts = fact_numbers(view, range(len(view.gold.hops))) if known else []
    return reading.FromFacts(facts=facts, answer=guess, known=known)


def long_from_facts(view: RequestView) -> reading.LongFromFacts:
    """ANSWER_AT_LENGTH: a sentence for each hop in the facts, and one with the answer or a guess."""
    found = find_answer(view, view.gold.question)
    hops = range(len(view.gold.hops))
    lines = [(f"{view.statement(hop)[:390].rstrip(' .,;')}.", range(hop, hop + 1)) for hop in hops if view.holds(hop)]
    guess = found.answer or wrong_answer(view)
    lines.append((f"The answer is {guess}.", hops if found.answer else range(0)))
    sentences = [reading.Sentence(text=text[:400], facts=fact_numbers(view, those)) for text, those in lines]
    return reading.LongFromFacts(sentences=sentences, known=bool(found.answer))


def fact_numbers(view: RequestView, hops: range) -> list[int]:
    """Return the numbers of the facts that contain the answers to hops, the last hop's first."""
    numbers: list[int] = []
    for hop in reversed(hops):
        if quoted := view.shown(hop):
            numbers += _numbers_in(view, view.sources[quoted.source - 1]["text"], hop)
    return list(dict.fromkeys(numbers))[:6]


def _numbers_in(view: RequestView, block: str, hop: int) -> list[int]:
    """Return the number of the first fact in a block that contains a hop's answer."""
    marks = [*_NUMBERED.finditer(block)]
    ends = [mark.start() for mark in marks[1:]] + [len(block)]
    parts = [(int(mark.group(1)), block[mark.end() : end]) for mark, end in zip(marks, ends, strict=True)]
    return [number for number, text in parts if view.quote(hop, "", text)][:1]


def recall_as(
    output: type[Output],
    *,
    found: Callable[[RequestView], str] = lambda _: "",
    otherwise: Callable[[RequestView], str] = lambda _: "",
    reason: str = "",
) -> Callable[[RequestView], Output]:
    """Return a handler that replies with the answer found or memorized, or with the reason why there is none.

    Args:
        output: the type of the reply.
        found: returns an answer that does not come from memory.
        otherwise: returns the answer where none is known.
        reason: why there is none.
    """

    def handle(view: RequestView) -> Output:
        known = found(view) or (view.gold.answer if view.knows_unaided() else "")
        fields = {"answer": known or otherwise(view), "known": bool(known), "reason": "" if known else reason}
        return output.model_validate(fields)

    return handle


def wrong_answer(view: RequestView) -> str:
    """Return something else of the answer's kind."""
    return view.decoy(view.gold.answer)


def reason(view: RequestView) -> Output:
    """REASON: the known hops in their order, then a note if something is missing."""
    found = find_answer(view, view.question)
    lines = [view.statement(hop) for hop in range(len(view.gold.hops)) if view.holds(hop)]
    missing = "" if found.answer else "What else the question needs is not said."
    text = " ".join([*lines, missing]).strip()[:800]
    return reasoning.Reasoned(reason=text, citations=[*found.quotes], answer=found.answer)


def integrate(view: RequestView) -> Output:
    """INTEGRATE: equal answers once, different ones next to each other."""
    distinct: dict[str, str] = {}
    for each in view.given["answers"]:
        distinct.setdefault(comparison_key(each["answer"]).removeprefix("it is ").removeprefix("the "), each["answer"])
    return reasoning.Integrated(answer=" or ".join(distinct.values())[:600])


# Passages in other words


def aggregate(view: RequestView) -> Output:
    """AGGREGATE: the hops that the step asks for and builds on, otherwise a related source."""
    shown = {hop: quoted for hop in asked_for(view) if (quoted := view.shown(hop))}
    if not shown:
        return _related(view)
    text = " ".join(view.statement(hop) for hop in shown)[:_SUMMARY]
    return reading.Knowledge(knowledge=text, citations=[*shown.values()][:MAX_CITATIONS])


def asked_for(view: RequestView) -> list[int]:
    """Return the hop that a step asks for and those that it builds on; for the whole question every hop."""
    target = view.target(view.question)
    if target is None:
        return []
    if target == WHOLE:
        return [*range(len(view.gold.hops))]
    wanted = {target}
    for hop in range(target, -1, -1):
        if hop in wanted:
            wanted |= {need - 1 for need in view.gold.hops[hop].needs()}
    return sorted(wanted)


def _related(view: RequestView) -> reading.Knowledge:
    """Return the beginning of the source with most of the step's words: a summary that does not help."""
    asked = content_words(view.question)
    likeness = [len(asked & content_words(f"{source['title']} {source['text']}")) for source in view.sources]
    if not likeness or max(likeness) < _RELATED:
        return reading.Knowledge()
    at = likeness.index(max(likeness))
    beginning = next(iter(sentences(view.sources[at]["text"])), "")[:240]
    return reading.Knowledge(knowledge=beginning, citations=[Quote(source=at + 1, quote=excerpt(beginning, ""))])


def extract(view: RequestView) -> Output:
    """EXTRACT: the hops that the passage answers, and other names in it."""
    source = view.sources[0]
    triples = [_triple(view, hop, source["title"]) for hop in range(len(view.gold.hops)) if view.shown(hop)]
    mentioned = [name for name in find_names(source["text"]) if name not in source["title"]][:_MENTIONS]
    triples += [
        reading.Triple(subject=source["title"][:100], predicate="mentions", object=name[:160]) for name in mentioned
    ]
    return reading.Extraction(triples=triples[: reading.MAX_TRIPLES])


def _triple(view: RequestView, hop: int, title: str) -> reading.Triple:
    """Return a hop as a triple; its subject is the title if the passage does not name it."""
    known = view.gold.hops[hop]
    answers = {at: each.answer for at, each in enumerate(view.gold.hops, start=1)}
    subject = fill_references(known.subject, answers)
    if not mentions(f"{title} {view.sources[0]['text']}", subject):
        subject = title
    return reading.Triple(subject=subject[:100], predicate=known.predicate[:80], object=known.answer[:160])


def infer(view: RequestView) -> Output:
    """INFER: a statement for each hop that the sources answer."""
    shown = {hop: quoted for hop in range(len(view.gold.hops)) if (quoted := view.shown(hop))}
    inferences = [
        reasoning.Inference(
            question=view.gold.asked(hop)[:240],
            claim=view.statement(hop)[:240],
            citations=[quoted],
        )
        for hop, quoted in shown.items()
    ]
    return reasoning.Inferences(inferences=inferences[: reasoning.MAX_INFERENCES])
