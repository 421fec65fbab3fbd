"""A question's own graph: entities and the facts between them, each with its passages (RAS, section 3.2).

Facts are keyed by their number as text. It is what roles are shown and cite, so it never changes.
"""

import asyncio
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from typing_extensions import TypedDict

from sleuth import prompts
from sleuth.agents.formatting import Facts
from sleuth.agents.formatting import facts as chain
from sleuth.agents.model_calls import Desk
from sleuth.agents.roles.reading import EXTRACT, MOST, ExtractInput, Extraction
from sleuth.graphs.core import Citation, ask_or
from sleuth.graphs.evidence import sources, support
from sleuth.tools.storage import Triple, TripleStore
from sleuth.tools.text import comparison_key, single_line
from sleuth.tools.types import Passage

_ARTICLE = re.compile(r"^(?:the|an|a) (?=\S)")
_MARKS = " \"'“”‘’«».,;:!?()[]"
_PRONOUNS = frozenset({"he", "she", "it", "they", "him", "her", "them"})


class Round(TypedDict):
    """A sub-query, and the passages found with it, best first, by archive reference."""

    query: str
    passages: list[str]


class Fact(TypedDict):
    """An edge: `subject` and `object` are keys of entities, `passages` ids, `round` is the one that found it first."""

    subject: str
    predicate: str
    object: str
    passages: list[str]
    round: str


Entities = Mapping[str, str]
Rounds = Mapping[str, Sequence[Passage]]
Found = Sequence[tuple[Passage, Sequence[Triple]]]
"""What passages say, best first."""


def identity(name: str) -> str:
    """What makes two names one entity: letter case, spaces, an article before and marks around do not matter."""
    kept, before = name, None
    while kept != before:
        before = kept
        kept = _ARTICLE.sub("", _folded(kept).strip(_MARKS))
    return kept


async def look_up(store: TripleStore, passages: Mapping[str, Passage]) -> dict[str, list[Triple]]:
    """The triples of those passages that were read before, by any run."""
    marks = {name: passage.fingerprint() for name, passage in passages.items()}
    kept = await store.get(marks.values(), version=await prompt_version())
    return {name: kept[mark] for name, mark in marks.items() if mark in kept}


async def extract(store: TripleStore, passages: Sequence[Passage], asking: Desk) -> Found:
    """Reads passages side by side, and keeps their triples for all further runs; a failed reading is not kept."""
    version = await prompt_version()
    said = await asyncio.gather(*(_read(passage, asking) for passage in passages))
    found = [(passage, triples) for passage, triples in zip(passages, said, strict=True) if triples is not None]
    await store.put({passage.fingerprint(): triples for passage, triples in found}, version=version)
    return found


async def prompt_version() -> str:
    """Names the prompt: what another one has found does not count."""
    await prompts.read(EXTRACT.prompt)
    return prompts.load(EXTRACT.prompt).version


async def _read(passage: Passage, asking: Desk) -> list[Triple] | None:
    """The triples of a passage; None where its reading failed."""
    nothing = Extraction(triples=[])
    loss = f"Passage {passage.id} adds no facts."
    said = await ask_or(asking, EXTRACT, ExtractInput(sources=sources([passage])), nothing, loss)
    if said is nothing:
        return None
    written = [(triple.subject, triple.predicate, triple.object) for triple in said.triples]
    return [triple for triple in (_tidy(parts) for parts in written) if _usable(triple)]


def _tidy(parts: Triple) -> Triple:
    subject, predicate, object = (single_line(part) for part in parts)
    return subject, predicate, object


def _usable(triple: Triple) -> bool:
    """Whether it can be read alone: a pronoun would become one entity of all that it stands for."""
    return all(identity(part) for part in triple) and not {triple[0].casefold(), triple[2].casefold()} & _PRONOUNS


def full(found: Found) -> list[str]:
    """A warning for each passage that holds as many facts as are asked for, and so perhaps more."""
    most = [passage.id for passage, triples in found if len(triples) >= MOST]
    return [f"{id} may hold more facts: no more than {MOST} are asked for from one passage" for id in most]


def grounded(found: Found) -> tuple[Found, list[str]]:
    """Without triples of whose subject or object the passage has no word: inventions, which warnings count."""
    kept = [(passage, [triple for triple in triples if _named(triple, passage)]) for passage, triples in found]
    lost = [(passage, len(all) - len(some)) for (passage, some), (_, all) in zip(kept, found, strict=True)]
    return kept, [
        f"dropped triples whose names {passage.id} does not have: {count}" for passage, count in lost if count
    ]


def _named(triple: Triple, passage: Passage) -> bool:
    text = _folded(f"{passage.title} {passage.text}")
    return all(any(word in text for word in _telling(name)) for name in (triple[0], triple[2]))


def _telling(name: str) -> list[str]:
    """The words of a name that are more than "of" or "the", if it has any such."""
    every = re.findall(r"\w+", _folded(name)) or [_folded(name)]
    return [word for word in every if len(word) > 3 or word.isdigit()] or every


def _folded(text: str) -> str:
    return comparison_key(unicodedata.normalize("NFKC", text))


def merge(
    entities: Entities, facts: Mapping[str, Fact], round: str, found: Found
) -> tuple[dict[str, str], dict[str, Fact]]:
    """The entities that are new, and the facts that are new or stand in further passages (equation 6)."""
    numbers = {(fact["subject"], identity(fact["predicate"]), fact["object"]): at for at, fact in facts.items()}
    names: dict[str, str] = {}
    changed: dict[str, Fact] = {}
    for passage, triples in found:
        for subject, predicate, object in triples:
            ends = identity(subject), identity(object)
            names = {**dict(zip(ends, (subject, object), strict=True)), **names}
            number = max(map(int, numbers.values()), default=0) + 1
            at = numbers.setdefault((ends[0], identity(predicate), ends[1]), str(number))
            new = Fact(subject=ends[0], predicate=predicate, object=ends[1], passages=[], round=round)
            fact = changed.get(at) or facts.get(at) or new
            if passage.id not in fact["passages"]:
                changed[at] = Fact(**{**fact, "passages": [*fact["passages"], passage.id]})
    return {key: name for key, name in names.items() if key not in entities}, changed


@dataclass(frozen=True, kw_only=True)
class Behind:
    """What stands behind a number that a role was shown: object and subject of a triple, or a whole passage."""

    names: tuple[str, ...] = ()
    passages: list[Passage]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """Facts as roles see them, those of the best passages first, and what stands behind their numbers."""

    sources: tuple[Facts, ...]
    behind: dict[int, Behind] = field(default_factory=dict)


def as_triples(entities: Entities, facts: Mapping[str, Fact], rounds: Rounds) -> Shown:
    """The graph: every triple under the sub-query that found it first."""
    by_id = {passage.id: passage for found in rounds.values() for passage in found}
    lines: dict[tuple[int, str], list[str]] = {}
    behind = {}
    for number, fact in facts.items():
        subject, object = entities.get(fact["subject"], ""), entities.get(fact["object"], "")
        line = chain.fact(int(number), (subject, fact["predicate"], object))
        lines.setdefault((int(fact["round"]), fact["passages"][0]), []).append(line)
        stands_in = [by_id[id] for id in fact["passages"] if id in by_id]
        behind[int(number)] = Behind(names=(object, subject), passages=stands_in)
    return Shown(sources=_best_first(lines), behind=behind)


def as_texts(rounds: Rounds) -> Shown:
    """The passages as they are, in the place of triples (ablation): each under the sub-query that found it first."""
    lines: dict[tuple[int, str], list[str]] = {}
    behind: dict[int, Behind] = {}
    for at, passages in rounds.items():
        for passage in passages:
            if all(passage not in before.passages for before in behind.values()):
                number = len(behind) + 1
                lines[int(at), passage.id] = [f"[{number}] {single_line(passage.title)}\n{passage.text.strip()}"]
                behind[number] = Behind(passages=[passage])
    return Shown(sources=_best_first(lines), behind=behind)


def _best_first(lines: Mapping[tuple[int, str], list[str]]) -> tuple[Facts, ...]:
    """The best passage of each round, the latest round first, then the second-best: the others may have to go."""
    ranked: list[tuple[int, int, str]] = []
    for (round, _), those in lines.items():
        rank = sum(round == -other for _, other, _ in ranked)
        ranked.append((rank, -round, "\n".join(those)))
    return tuple(Facts(query=-round, text=text) for _, round, text in sorted(ranked, key=lambda entry: entry[:2]))


def cite(asking: Desk, shown: Shown, numbers: Sequence[int], answer: str) -> list[Citation]:
    """Where the facts stand that an answer was made from; where none of them does, those that name the answer."""
    found = {number: _stands(shown, number, answer) for number in numbers}
    for number in [number for number, where in found.items() if not where]:
        reason = "it does not stand in its passage word for word" if number in shown.behind else "there is no such fact"
        asking.warn(f"dropped a citation of fact {number}: {reason}")
    if not any(found.values()):
        naming = (number for number, behind in shown.behind.items() if identity(answer) in map(identity, behind.names))
        found = {number: _stands(shown, number, answer) for number in naming}
    every = [citation for where in found.values() for citation in where]
    return [citation for at, citation in enumerate(every) if citation not in every[:at]]


def _stands(shown: Shown, number: int, answer: str) -> list[Citation]:
    behind = shown.behind.get(number)
    return _support(behind.names, answer, behind.passages) if behind else []


def _support(names: tuple[str, ...], answer: str, passages: Sequence[Passage]) -> list[Citation]:
    if not names:
        return support(answer, passages)
    object, subject = names
    return support(object, passages, beside=subject) or support(subject, passages)
