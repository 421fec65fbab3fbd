"""Simulated roles that condense passages: aggregator, extractor, and RetroRAG's inferences."""

from sleuth.agents.formatting import MAX_CITATIONS, Quote
from sleuth.agents.roles import reading, reasoning
from sleuth.studio.simulation.gold import WHOLE
from sleuth.studio.simulation.reply import SimulatedReply, structured_reply
from sleuth.studio.simulation.request_view import RequestView
from sleuth.studio.simulation.wording import content_words, excerpt, fill_references, find_names, mentions
from sleuth.tools.text import sentences

_SUMMARY = 600
"""Characters of a summary."""

_RELATED = 2
"""Words that a source must share with a step to be summarized, helpful or not."""

_MENTIONS = 6
"""Facts about names in a passage, in addition to those that matter: models extract irrelevant facts too."""


def aggregate(view: RequestView) -> SimulatedReply:
    """AGGREGATE: the hops that the step asks for and builds on, otherwise a related source."""
    shown = {hop: quoted for hop in _asked_for(view) if (quoted := view.shown(hop))}
    if not shown:
        return structured_reply(reading.Knowledge() if view.simulation.teaching else _related(view))
    text = " ".join(view.statement(hop) for hop in shown)[:_SUMMARY]
    return structured_reply(reading.Knowledge(knowledge=text, citations=[*shown.values()][:MAX_CITATIONS]))


def _asked_for(view: RequestView) -> list[int]:
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


def extract(view: RequestView) -> SimulatedReply:
    """EXTRACT: the hops that the passage answers, and other names in it."""
    source = view.sources[0]
    triples = [_triple(view, hop, source["title"]) for hop in range(len(view.gold.hops)) if view.shown(hop)]
    mentioned = [name for name in find_names(source["text"]) if name not in source["title"]][:_MENTIONS]
    triples += [
        reading.Triple(subject=source["title"][:100], predicate="mentions", object=name[:160]) for name in mentioned
    ]
    return structured_reply(reading.Extraction(triples=triples[: reading.MAX_TRIPLES]))


def _triple(view: RequestView, hop: int, title: str) -> reading.Triple:
    """Return a hop as a triple; its subject is the title if the passage does not name it."""
    known = view.gold.hops[hop]
    answers = {at: each.answer for at, each in enumerate(view.gold.hops, start=1)}
    subject = fill_references(known.subject, answers)
    if not mentions(f"{title} {view.sources[0]['text']}", subject):
        subject = title
    return reading.Triple(subject=subject[:100], predicate=known.predicate[:80], object=known.answer[:160])


def infer(view: RequestView) -> SimulatedReply:
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
    return structured_reply(reasoning.Inferences(inferences=inferences[: reasoning.MAX_INFERENCES]))
