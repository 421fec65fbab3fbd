"""A question's own graph: entities and the facts between them, each with its passages (RAS, section 3.2).

Facts are keyed by their number as text. Roles read and cite this number, so it never changes.
"""

import asyncio
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import TypedDict

from sleuth import prompts
from sleuth.agents.formatting import Facts, format_fact
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.inputs import PassageInput
from sleuth.agents.roles.reading import EXTRACT, Extraction
from sleuth.graphs.core.answer import Citation, Entity, Graph, Relation
from sleuth.graphs.core.triples import TripleStore
from sleuth.graphs.evidence.citations import find_support
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.tools.text.normalization import comparison_key, single_line
from sleuth.tools.types import Passage, Triple

_ARTICLE = re.compile(r"^(?:the|an|a) (?=\S)")
_MARKS = " \"'“”‘’«».,;:!?()[]"
_PRONOUNS = frozenset({"he", "she", "it", "they", "him", "her", "them"})


class Fact(TypedDict):
    """An edge: `subject` and `object` are keys of entities, `passages` ids, `round` is the one that found it first."""

    subject: str
    predicate: str
    object: str
    passages: list[str]
    round: str


Entities = Mapping[str, str]
Rounds = Mapping[str, Sequence[Passage]]
PassageTriples = Sequence[tuple[Passage, Sequence[Triple]]]
"""Passages with their triples, best first."""


def entity_key(name: str) -> str:
    """Return the key that equal names share, without letter case, spaces, a leading article and surrounding marks."""
    key, before = name, None
    while key != before:
        before = key
        key = _ARTICLE.sub("", fold(key).strip(_MARKS))
    return key


async def stored_triples(store: TripleStore, passages: Mapping[str, Passage]) -> dict[str, list[Triple]]:
    """Return the triples of passages that any run has read before."""
    marks = {name: passage.fingerprint() for name, passage in passages.items()}
    stored = await store.get(marks.values(), version=await prompt_version())
    return {name: stored[mark] for name, mark in marks.items() if mark in stored}


async def extract_triples(store: TripleStore, passages: Sequence[Passage], model: ModelCaller) -> PassageTriples:
    """Extract triples from passages in parallel and store them for all runs; a failed extraction is not stored."""
    version = await prompt_version()
    replies = await asyncio.gather(*(_read(passage, model) for passage in passages))
    extracted = [(passage, triples) for passage, triples in zip(passages, replies, strict=True) if triples is not None]
    await store.put({passage.fingerprint(): triples for passage, triples in extracted}, version=version)
    return extracted


async def prompt_version() -> str:
    """Return the version of the prompt: triples of another version do not count."""
    await prompts.read()
    return prompts.load(EXTRACT.prompt).version


async def _read(passage: Passage, model: ModelCaller) -> list[Triple] | None:
    """Extract the triples of a passage; None if that failed."""
    nothing = Extraction(triples=[])
    loss = f"Passage {passage.id} adds no facts."
    reply = await model.ask_or(EXTRACT, PassageInput(sources=as_sources([passage])), nothing, loss)
    if reply is nothing:
        return None
    written = [
        (single_line(each.subject), single_line(each.predicate), single_line(each.object)) for each in reply.triples
    ]
    # A pronoun would merge all entities that it refers to.
    named = [each for each in written if not {each[0].casefold(), each[2].casefold()} & _PRONOUNS]
    return [each for each in named if all(map(entity_key, each))]


def fold(text: str) -> str:
    """Return a text without differences of letter case, spaces and widths of characters."""
    return comparison_key(unicodedata.normalize("NFKC", text))


def drop_ungrounded(extracted: PassageTriples) -> tuple[PassageTriples, list[str]]:
    """Drop triples whose subject or object has no word in the passage: inventions, which warnings count."""
    grounded = [
        (passage, [triple for triple in triples if _is_grounded(triple, passage)]) for passage, triples in extracted
    ]
    lost = [(passage, len(all) - len(some)) for (passage, some), (_, all) in zip(grounded, extracted, strict=True)]
    return grounded, [
        f"dropped triples whose names {passage.id} does not have: {count}" for passage, count in lost if count
    ]


def _is_grounded(triple: Triple, passage: Passage) -> bool:
    """Return whether a passage has a word of both names; short words such as "of" count only if there are no others."""
    text = fold(f"{passage.title} {passage.text}")
    for name in (fold(triple[0]), fold(triple[2])):
        every = re.findall(r"\w+", name) or [name]
        significant = [word for word in every if len(word) > 3 or word.isdigit()]
        if not any(word in text for word in significant or every):
            return False
    return True


def merge_triples(
    entities: Entities, facts: Mapping[str, Fact], round: str, extracted: PassageTriples
) -> tuple[dict[str, str], dict[str, Fact]]:
    """Return the new entities, and the facts that are new or have new passages (equation 6)."""
    numbers = {(fact["subject"], entity_key(fact["predicate"]), fact["object"]): at for at, fact in facts.items()}
    names: dict[str, str] = {}
    changed: dict[str, Fact] = {}
    for passage, triples in extracted:
        for subject, predicate, object in triples:
            ends = entity_key(subject), entity_key(object)
            names = {**dict(zip(ends, (subject, object), strict=True)), **names}
            number = max(map(int, numbers.values()), default=0) + 1
            at = numbers.setdefault((ends[0], entity_key(predicate), ends[1]), str(number))
            new = Fact(subject=ends[0], predicate=predicate, object=ends[1], passages=[], round=round)
            fact = changed.get(at) or facts.get(at) or new
            if passage.id not in fact["passages"]:
                changed[at] = fact | {"passages": [*fact["passages"], passage.id]}
    return {key: name for key, name in names.items() if key not in entities}, changed


def read_graph(state: Mapping[str, Any]) -> Graph | None:
    """Return the graph that a run's state contains, or None if nothing has been added to it."""
    if not (state.get("facts") and state.get("entities")):
        return None
    fields = tuple(Relation.__annotations__)
    edges = [Relation(**{key: fact[key] for key in fields}) for fact in state["facts"].values()]  # type: ignore[typeddict-item]
    return Graph(nodes=[Entity(id=id, name=name) for id, name in state["entities"].items()], edges=edges)


@dataclass(frozen=True, kw_only=True)
class FactSources:
    """The names and passages of a fact that a role was shown: object and subject of a triple, or a whole passage."""

    names: tuple[str, ...] = ()
    passages: list[Passage]


@dataclass(frozen=True, kw_only=True)
class RenderedFacts:
    """Facts in the form that roles read, those of the best passages first, and the sources of their numbers."""

    sources: tuple[Facts, ...]
    behind: dict[int, FactSources] = field(default_factory=dict)


def render_triples(entities: Entities, facts: Mapping[str, Fact], rounds: Rounds, *, repeat: bool) -> RenderedFacts:
    """Render the graph as the chain of sub-queries with their triples.

    Each triple is under the sub-query that found it first; with `repeat` under every one of whose passages it is
    (g_i of equation 4).
    """
    by_id = {passage.id: passage for round in rounds.values() for passage in round}
    lines: dict[tuple[int, str], list[str]] = {}
    behind = {}
    for number, fact in facts.items():
        subject, object = entities.get(fact["subject"], ""), entities.get(fact["object"], "")
        line = format_fact(int(number), (subject, fact["predicate"], object))
        places = {int(fact["round"]): fact["passages"][0]}
        for at, of_round in rounds.items() if repeat else ():
            for passage in reversed(of_round):  # the best one of a sub-query, if several have it
                if passage.id in fact["passages"]:
                    places[int(at)] = passage.id
        for place in places.items():
            lines.setdefault(place, []).append(line)
        passages = [by_id[id] for id in fact["passages"] if id in by_id]
        behind[int(number)] = FactSources(names=(object, subject), passages=passages)
    return RenderedFacts(sources=_best_first(lines), behind=behind)


def render_passages(rounds: Rounds, *, repeat: bool) -> RenderedFacts:
    """Render passages in place of triples (ablation), as `render_triples` does."""
    lines: dict[tuple[int, str], list[str]] = {}
    behind: dict[int, FactSources] = {}
    numbers: dict[str, int] = {}
    for at, passages in rounds.items():
        for passage in passages:
            if repeat or passage.id not in numbers:
                number = numbers.setdefault(passage.id, len(numbers) + 1)
                lines[int(at), passage.id] = [f"[{number}] {single_line(passage.title)}\n{passage.text.strip()}"]
                behind[number] = FactSources(passages=[passage])
    return RenderedFacts(sources=_best_first(lines), behind=behind)


def _best_first(lines: Mapping[tuple[int, str], list[str]]) -> tuple[Facts, ...]:
    """Order the best passages of all rounds, the latest round first, then the second-best: the last may be cut."""
    ranked: list[tuple[int, int, str]] = []
    for (round, _), those in lines.items():
        rank = sum(round == -other for _, other, _ in ranked)
        ranked.append((rank, -round, "\n".join(those)))
    return tuple(Facts(query=-round, text=text) for _, round, text in sorted(ranked, key=lambda entry: entry[:2]))


def cite_facts(model: ModelCaller, rendered: RenderedFacts, numbers: Sequence[int], answer: str) -> list[Citation]:
    """Cite the passages of the facts that an answer names; if none can be verified, those of facts that contain the
    answer.
    """
    by_number = {number: _supporting_citations(rendered.behind.get(number), answer) for number in numbers}
    for number in [number for number, citations in by_number.items() if not citations]:
        reason = (
            "its passage does not contain it word for word" if number in rendered.behind else "there is no such fact"
        )
        model.warn(f"dropped a citation of fact {number}: {reason}")
    if not any(by_number.values()):
        by_number = {
            number: _supporting_citations(behind, answer)
            for number, behind in rendered.behind.items()
            if entity_key(answer) in map(entity_key, behind.names)
        }
    every = [citation for citations in by_number.values() for citation in citations]
    return [citation for at, citation in enumerate(every) if citation not in every[:at]]


def _supporting_citations(fact: FactSources | None, answer: str) -> list[Citation]:
    if fact is None:
        return []
    if not fact.names:
        return find_support(answer, fact.passages)
    object, subject = fact.names
    return find_support(object, fact.passages, containing=subject) or find_support(subject, fact.passages)
