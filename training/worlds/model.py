"""World model: invented names, entities, and facts that fit each other in time."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from training.worlds.schema import Kind, Relation, Schema

ADULT = 20
"""Age from which a person has works, offices and awards."""
_STEPS = ("schooled", "birthplace", "teacher", "died", "spouse", "buried_in")
"""Relations that may be known of one namesake only."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Entity:
    """An entity; `note` distinguishes it from a namesake: "Anna Vell (botanist)". `last` is a person's last year."""

    id: str
    kind: str
    name: str
    year: int | None = None
    last: int | None = None
    she: bool = False
    article: bool = False
    note: str = ""

    @property
    def title(self) -> str:
        """The title of its page."""
        return f"{self.name} ({self.note})" if self.note else self.name

    @property
    def called(self) -> str:
        """The name in a sentence, on its own page."""
        return f"the {self.name}" if self.article else self.name

    @property
    def mention(self) -> str:
        """The name in a sentence of another page; unique."""
        return f"the {self.note} {self.name}" if self.note else self.called


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact; `object` is the id of an entity, a number or a word."""

    subject: str
    relation: str
    object: str | int


@dataclass(kw_only=True, slots=True)
class World:
    """Entities and facts; `namesakes` are pairs of people with the same name."""

    id: str
    schema: Schema
    entities: dict[str, Entity] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    namesakes: list[tuple[str, str]] = field(default_factory=list)

    def of(self, *kinds: str) -> list[Entity]:
        """Return the entities of these kinds."""
        return [each for each in self.entities.values() if each.kind in kinds]

    def step(self, relation: str, known: str | int, *, forward: bool) -> list[Fact]:
        """Return the facts of a relation by their subject, or by their object; a symmetric one reads both ways."""
        both = self.schema.relations[relation].symmetric
        found = [each for each in self.facts if each.relation == relation]
        return [
            each
            for each in found
            if (each.subject if forward else each.object) == known
            or (both and (each.object if forward else each.subject) == known)
        ]

    def is_related(self, a: str, b: str) -> bool:
        """Return whether a fact connects two entities; a second one would make their pages ambiguous."""
        return a != b and any({each.subject, each.object} == {a, b} for each in self.facts)


class Names:
    """Invented names, each given once."""

    def __init__(self, schema: Schema, dice: Random) -> None:
        self._schema, self._dice = schema, dice
        self._used: set[tuple[str, str]] = set()

    def new(self, kind: Kind, style: int) -> str:
        """Return a new name for an entity of a kind, in one of the styles."""
        return self._unused("name", lambda: self._make(self._dice.choice(kind.names), style))

    def _unused(self, part: str, make: Callable[[], str]) -> str:
        while (part, name := make()) in self._used:
            pass
        self._used.add((part, name))
        return name

    def _make(self, pattern: str, style: int) -> str:
        words, dice = self._schema.title_words, self._dice
        n, n2 = dice.sample(words["n"], 2)
        month = dice.choice(self._schema.lists["m"])
        values = {"r": self._root(style), "a": dice.choice(words["a"]), "n": n, "n2": n2, "m": month}
        return with_articles(pattern.format(f=self._first(style), **values))

    def _root(self, style: int) -> str:
        parts = self._schema.name_styles[style]
        order = ("onset", "vowel", "middle", "ending")
        return self._unused("root", lambda: _smooth("".join(self._dice.choice(parts[part]) for part in order)))

    def _first(self, style: int) -> str:
        parts = self._schema.name_styles[style]
        ending = self._dice.choice([*parts["she"], *parts["he"]])
        return _smooth(self._dice.choice(parts["onset"]) + self._dice.choice(parts["vowel"]) + ending)

    def is_she(self, name: str) -> bool:
        """Return whether a person with this name is a woman: the first name's ending decides."""
        endings = [
            (ending, part) for each in self._schema.name_styles for part in ("she", "he") for ending in each[part]
        ]
        first = name.split(maxsplit=1)[0]
        return max((len(ending), part) for ending, part in endings if first.endswith(ending))[1] == "she"


def _smooth(name: str) -> str:
    """Return a name without letters three times in a row."""
    return re.sub(r"(\w)\1\1+", r"\1\1", name, flags=re.IGNORECASE)


def with_articles(text: str) -> str:
    """Return a text with "an" before vowels."""
    return re.sub(r"\b([Aa]) (?=[AEIOUaeiou])", r"\1n ", text)


def sample_world(id: str, schema: Schema, names: Names, dice: Random) -> World:
    """Return a world with entities of every kind, namesakes, and facts."""
    world = World(id=id, schema=schema)
    styles = dice.sample(range(len(schema.name_styles)), 2)
    for name, kind in schema.kinds.items():
        for _ in range(dice.randint(*kind.count)):
            _add(world, name, names.new(kind, dice.choice(styles)), names, dice)
    _share_names(world, names, dice)
    for relation in schema.relations.values():
        world.facts += list(_sampled(world, relation, dice))
    _separate_namesakes(world, dice)
    return world


def _add(world: World, kind: str, name: str, names: Names, dice: Random) -> None:
    row = world.schema.kinds[kind]
    year = dice.randint(*row.year) if row.year else None
    last = year + dice.randint(58, 88) if year and kind == "person" else None
    she = kind == "person" and names.is_she(name)
    entity = Entity(id=f"{world.id}-{len(world.entities):02}", kind=kind, name=name, year=year, last=last)
    world.entities[entity.id] = replace(entity, she=she, article=row.article)


def _share_names(world: World, names: Names, dice: Random) -> None:
    """Give two pairs of people one name each, with trades to distinguish them, and a film a novel's title."""
    people = dice.sample(world.of("person"), 4)
    trades = dice.sample(world.schema.lists["trade"], 4)
    for first, second, trade, other in zip(people[::2], people[1::2], trades[::2], trades[1::2], strict=True):
        world.entities[first.id] = replace(first, note=trade)
        world.entities[second.id] = replace(second, name=first.name, note=other, she=names.is_she(first.name))
        world.namesakes.append((first.id, second.id))
    film, novel = dice.choice(world.of("film")), dice.choice(world.of("novel"))
    world.entities[novel.id] = replace(novel, note="novel")
    world.entities[film.id] = replace(film, name=novel.name, note="film")


def _sampled(world: World, relation: Relation, dice: Random) -> Iterator[Fact]:
    if relation.per_object:
        people = world.of(*relation.subjects)
        for each in world.of(relation.object):
            able = [person for person in people if _fits(person, each, relation)]
            able = [person for person in able if not world.is_related(person.id, each.id)]
            chosen = dice.sample(able, min(len(able), dice.randint(*relation.per_object)))
            yield from (Fact(person.id, relation.name, each.id) for person in chosen)
        return
    taken: set[str] = set()
    for subject in world.of(*relation.subjects):
        given = _object(world, relation, subject, taken, dice)
        if given is not None and (dice.random() < relation.share or (relation.word == "trade" and subject.note)):
            taken |= {subject.id, str(given)} if relation.within or relation.symmetric else set()
            yield Fact(subject.id, relation.name, given)


def _object(world: World, relation: Relation, subject: Entity, taken: set[str], dice: Random) -> str | int | None:
    if relation.number:
        return dice.randint(*relation.number)
    if relation.word:
        drawn = dice.choice(world.schema.lists[relation.word])
        return subject.note if relation.word == "trade" and subject.note else drawn
    if relation.value:
        return subject.year if relation.value == "first" else subject.last
    able = [each for each in world.of(relation.object) if _fits(subject, each, relation) and each.id not in taken]
    able = [each for each in able if not relation.within or _reaches(world, each.id, subject.id, relation.within)]
    able = [each for each in able if each.id != subject.id and not world.is_related(subject.id, each.id)]
    return dice.choice(able).id if able and subject.id not in taken else None


def _reaches(world: World, start: str, end: str, path: Sequence[str]) -> bool:
    for relation in path:
        start = next((str(each.object) for each in world.step(relation, start, forward=True)), "")
    return start == end


def _fits(subject: Entity, other: Entity, relation: Relation) -> bool:
    """Return whether the two lived or existed at the time of the fact."""
    if subject.year is None or other.year is None or relation.timeless:
        return True
    if relation.gap:
        low, high = relation.gap
        return low <= other.year - subject.year <= high
    if other.last is not None:
        return other.year + ADULT <= subject.year < other.last
    if relation.per_object:
        return subject.year + ADULT <= other.year < (subject.last or 0)
    return other.year <= subject.year


def _separate_namesakes(world: World, dice: Random) -> None:
    """Remove two facts of one of each pair that are known of the other."""
    for ids in world.namesakes:
        poorer = dice.choice(ids)
        known = [{each.relation for each in world.facts if each.subject == id} for id in ids]
        shared = [each for each in _STEPS if all(each in relations for relations in known)]
        world.facts = [each for each in world.facts if not (each.subject == poorer and each.relation in shared[:2])]
