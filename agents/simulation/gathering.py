"""The roles that turn passages into something shorter: aggregator, extractor, and the detective's inferences."""

from sleuth.agents import aggregator, detective, extractor
from sleuth.agents.citation import MOST, Quote
from sleuth.agents.simulation.gold import WHOLE
from sleuth.agents.simulation.said import Said, said
from sleuth.agents.simulation.scene import Quoted, Scene
from sleuth.agents.simulation.wording import content, excerpt, filled, names, says
from sleuth.tools.text import sentences

_SUMMARY = 600
"""The most that a summary holds."""

_RELATED = 2
"""A source that shares so many words with a step is summarised, whether it helps or not."""

_MENTIONS = 6
"""Facts about names in a passage, beside those that matter: models write down what they see."""


def aggregate(scene: Scene) -> Said:
    """AGGREGATE: what the sources tell of the step and of what it builds on, else what is related to it at all."""
    shown = {hop: quoted for hop in _asked_for(scene) if (quoted := scene.shown(hop))}
    if not shown:
        return said(aggregator.Knowledge() if scene.simulation.teaching else _related(scene))
    text = " ".join(scene.statement(hop) for hop in shown)[:_SUMMARY]
    return said(aggregator.Knowledge(knowledge=text, citations=_quotes(list(shown.values()))[:MOST]))


def _quotes(shown: list[Quoted]) -> list[Quote]:
    return [Quote(source=each.source, quote=each.quote) for each in shown]


def _asked_for(scene: Scene) -> list[int]:
    """The hop that a step asks for and all that it builds on; for the question itself every hop."""
    target = scene.target(scene.question)
    if target is None:
        return []
    if target == WHOLE:
        return [*range(len(scene.gold.hops))]
    wanted = {target}
    for hop in range(target, -1, -1):
        if hop in wanted:
            wanted |= {need - 1 for need in scene.gold.hops[hop].needs()}
    return sorted(wanted)


def _related(scene: Scene) -> aggregator.Knowledge:
    """The beginning of the source that has most of the step's words: a summary that does not help."""
    asked = content(scene.question)
    likeness = [len(asked & content(f"{source['title']} {source['text']}")) for source in scene.sources]
    if not likeness or max(likeness) < _RELATED:
        return aggregator.Knowledge()
    at = likeness.index(max(likeness))
    beginning = next(iter(sentences(scene.sources[at]["text"])), "")[:240]
    return aggregator.Knowledge(knowledge=beginning, citations=[Quote(source=at + 1, quote=excerpt(beginning, ""))])


def extract(scene: Scene) -> Said:
    """EXTRACT: the hops that the passage tells, and what else it mentions."""
    source = scene.sources[0]
    triples = [_triple(scene, hop, source["title"]) for hop in range(len(scene.gold.hops)) if scene.shown(hop)]
    mentioned = [name for name in names(source["text"]) if name not in source["title"]][:_MENTIONS]
    triples += [
        extractor.Triple(subject=source["title"][:100], predicate="mentions", object=name[:160]) for name in mentioned
    ]
    return said(extractor.Extraction(triples=triples[: extractor.MOST]))


def _triple(scene: Scene, hop: int, title: str) -> extractor.Triple:
    """A hop as a triple; its subject is the passage's where the passage does not name it."""
    known = scene.gold.hops[hop]
    answers = {at: each.answer for at, each in enumerate(scene.gold.hops, start=1)}
    subject = filled(known.subject, answers)
    if not says(f"{title} {scene.sources[0]['text']}", subject):
        subject = title
    return extractor.Triple(subject=subject[:100], predicate=known.predicate[:80], object=known.answer[:160])


def infer(scene: Scene) -> Said:
    """INFER: a statement for each hop that the sources tell."""
    shown = {hop: quoted for hop in range(len(scene.gold.hops)) if (quoted := scene.shown(hop))}
    inferences = [
        detective.Inference(
            question=scene.gold.asked(hop)[:240],
            claim=scene.statement(hop)[:240],
            citations=_quotes([quoted]),
        )
        for hop, quoted in shown.items()
    ]
    return said(detective.Inferences(inferences=inferences[: detective.MAX_INFERENCES]))
