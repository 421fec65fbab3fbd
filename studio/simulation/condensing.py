"""The roles that turn passages into something shorter: aggregator, extractor, and the detective's inferences."""

from sleuth.agents.formatting import MAX_CITATIONS, Quote
from sleuth.agents.roles import reading, reasoning
from sleuth.studio.simulation.gold import WHOLE
from sleuth.studio.simulation.reply import SimulatedReply, structured
from sleuth.studio.simulation.request_view import Quoted, RequestView
from sleuth.studio.simulation.wording import content, excerpt, filled, names, says
from sleuth.tools.text import sentences

_SUMMARY = 600
"""The most that a summary holds."""

_RELATED = 2
"""A source that shares so many words with a step is summarised, whether it helps or not."""

_MENTIONS = 6
"""Facts about names in a passage, beside those that matter: models write down what they see."""


def aggregate(view: RequestView) -> SimulatedReply:
    """AGGREGATE: what the sources tell of the step and of what it builds on, else what is related to it at all."""
    shown = {hop: quoted for hop in _asked_for(view) if (quoted := view.shown(hop))}
    if not shown:
        return structured(reading.Knowledge() if view.simulation.teaching else _related(view))
    text = " ".join(view.statement(hop) for hop in shown)[:_SUMMARY]
    return structured(reading.Knowledge(knowledge=text, citations=_quotes(list(shown.values()))[:MAX_CITATIONS]))


def _quotes(shown: list[Quoted]) -> list[Quote]:
    return [Quote(source=each.source, quote=each.quote) for each in shown]


def _asked_for(view: RequestView) -> list[int]:
    """The hop that a step asks for and all that it builds on; for the question itself every hop."""
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
    """The beginning of the source that has most of the step's words: a summary that does not help."""
    asked = content(view.question)
    likeness = [len(asked & content(f"{source['title']} {source['text']}")) for source in view.sources]
    if not likeness or max(likeness) < _RELATED:
        return reading.Knowledge()
    at = likeness.index(max(likeness))
    beginning = next(iter(sentences(view.sources[at]["text"])), "")[:240]
    return reading.Knowledge(knowledge=beginning, citations=[Quote(source=at + 1, quote=excerpt(beginning, ""))])


def extract(view: RequestView) -> SimulatedReply:
    """EXTRACT: the hops that the passage tells, and what else it mentions."""
    source = view.sources[0]
    triples = [_triple(view, hop, source["title"]) for hop in range(len(view.gold.hops)) if view.shown(hop)]
    mentioned = [name for name in names(source["text"]) if name not in source["title"]][:_MENTIONS]
    triples += [
        reading.Triple(subject=source["title"][:100], predicate="mentions", object=name[:160]) for name in mentioned
    ]
    return structured(reading.Extraction(triples=triples[: reading.MAX_TRIPLES]))


def _triple(view: RequestView, hop: int, title: str) -> reading.Triple:
    """A hop as a triple; its subject is the passage's where the passage does not name it."""
    known = view.gold.hops[hop]
    answers = {at: each.answer for at, each in enumerate(view.gold.hops, start=1)}
    subject = filled(known.subject, answers)
    if not says(f"{title} {view.sources[0]['text']}", subject):
        subject = title
    return reading.Triple(subject=subject[:100], predicate=known.predicate[:80], object=known.answer[:160])


def infer(view: RequestView) -> SimulatedReply:
    """INFER: a statement for each hop that the sources tell."""
    shown = {hop: quoted for hop in range(len(view.gold.hops)) if (quoted := view.shown(hop))}
    inferences = [
        reasoning.Inference(
            question=view.gold.asked(hop)[:240],
            claim=view.statement(hop)[:240],
            citations=_quotes([quoted]),
        )
        for hop, quoted in shown.items()
    ]
    return structured(reasoning.Inferences(inferences=inferences[: reasoning.MAX_INFERENCES]))
