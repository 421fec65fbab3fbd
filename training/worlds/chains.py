"""Chains of steps between a world's entities, as phrases, questions and hops."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from training.worlds.model import Entity, Fact, World
from training.worlds.pages import Book, Edition, agree, capitalized, join, value_text
from training.worlds.schema import Relation


@dataclass(frozen=True, slots=True)
class Step:
    """One step from a subject to its object, or back."""

    relation: str
    forward: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """A description: what the steps lead to from an entity."""

    start: str
    steps: tuple[Step, ...] = ()

    def then(self, *steps: Step) -> "Chain":
        """Return a longer chain."""
        return Chain(self.start, (*self.steps, *steps))


@dataclass(frozen=True, kw_only=True, slots=True)
class Hop:
    """A step of a decomposition, and the facts that it needs."""

    question: str
    answer: str
    facts: tuple[Fact, ...]


class Phrases:
    """Words for the facts that an edition of a world states."""

    def __init__(self, world: World, book: Book, edition: Edition, dice: Random) -> None:
        self._world, self._book, self._edition, self._dice = world, book, edition, dice
        self._near: dict[str, list[Fact]] = defaultdict(list)
        for fact in world.facts:
            self._near[fact.subject].append(fact)
            self._near[str(fact.object)].append(fact)

    def _relation(self, name: str) -> Relation:
        return self._world.schema.relations[name]

    def _entity(self, id: str) -> Entity:
        return self._world.entities[id]

    def _next(self, fact: Fact, known: str) -> str | int:
        return fact.object if fact.subject == known else fact.subject

    def _is_direct(self, fact: Fact) -> bool:
        return fact not in self._book.relative

    def _page(self, fact: Fact) -> str:
        return self._edition.places[fact].page

    def follow(self, chain: Chain) -> list[Fact] | None:
        """Return a chain's facts; None if a step leads nowhere, to several ends, or to a date stated indirectly."""
        facts, at = list[Fact](), chain.start
        for step in chain.steps:
            found = self._world.step(step.relation, at, forward=step.forward)
            if len(found) != 1 or not self._is_direct(found[0]):
                return None
            facts.append(found[0])
            at = str(self._next(found[0], at))
        return facts

    def _steps_from(self, id: str) -> list[tuple[Step, Fact]]:
        """Return the unambiguous steps from an entity."""
        steps = [(self._step_of(fact, id), fact) for fact in self._near[id]]
        number = Counter(step for step, _ in steps)
        return [
            (step, fact)
            for step, fact in steps
            if number[step] == 1
            and self._is_direct(fact)
            and (step.forward or "vp" in self._relation(step.relation).words)
        ]

    def _step_of(self, fact: Fact, known: str) -> Step:
        return Step(fact.relation, fact.subject == known or self._relation(fact.relation).symmetric)

    def _noun(self, step: Step, fact: Fact) -> str:
        kind = self._relation(step.relation).object if step.forward else self._entity(fact.subject).kind
        return self._world.schema.kinds[kind].noun if kind else ""

    def describe(self, chain: Chain) -> str:
        """Return a chain as a phrase: "the author of …"."""
        if not chain.steps:
            return self._entity(chain.start).mention
        step, inner = chain.steps[-1], self.describe(Chain(chain.start, chain.steps[:-1]))
        words = self._relation(step.relation).words
        if step.forward:
            return self._dice.choice(words["np"]).replace("{s}", inner)
        noun = self._noun(step, (self.follow(chain) or [])[-1])
        vp = agree(self._dice.choice(words["vp"]), plural=False).replace("{o}", inner)
        return f"the person who {vp}" if noun == "person" else f"the {noun} that {vp}"

    def _asked(self, step: Step, subject: str, fact: Fact, *, way: int | None = None) -> str:
        """Return a step as a question, in a fixed or any wording."""
        words, frames = self._relation(step.relation).words, self._world.schema.frames
        noun = self._noun(step, fact)
        who = "_who" if noun == "person" else ""
        if step.forward:
            ways = list(words["ask"])
            if way is None and self._relation(step.relation).object:
                ways += [frame.replace("{np}", np) for frame in frames[f"what{who}"] for np in words["np"]]
            chosen = self._dice.choice(ways) if way is None else ways[way]
            return clean(chosen.replace("{s}", subject))
        frame = self._dice.choice(frames[f"which{who}"]) if way is None else frames[f"which{who}"][way]
        vp = self._dice.choice(words["vp"]) if way is None else words["vp"][0]
        return clean(frame.replace("{noun}", noun).replace("{vp}", agree(vp, plural=False)).replace("{o}", subject))

    def _hops(self, chain: Chain, before: int = 0) -> list[Hop]:
        """Return the hops of a chain that follows `before` others."""
        facts = self.follow(chain) or []
        hops, at = list[Hop](), chain.start
        for number, (step, fact) in enumerate(zip(chain.steps, facts, strict=True)):
            subject = f"#{before + number}" if number else self._entity(chain.start).mention
            question = self._asked(step, subject, fact, way=0)
            hops.append(Hop(question=question, answer=self._text(self._next(fact, at), fact), facts=(fact,)))
            at = str(self._next(fact, at))
        return hops

    def _text(self, end: str | int, fact: Fact) -> str:
        return self._entity(str(end)).name if str(end) in self._world.entities else value_text(self._world, fact)

    def _aliases(self, end: str | int, fact: Fact | None = None) -> tuple[str, ...]:
        """Return other forms of an answer."""
        if entity := self._world.entities.get(str(end)):
            short = entity.name.removeprefix("River ").removeprefix("Mount ").removeprefix("Battle of ")
            forms = [entity.title, entity.mention, short if entity.kind != "battle" else entity.name]
            return tuple(dict.fromkeys(form for form in forms if form != entity.name))
        relation = self._relation(fact.relation) if fact else None
        if relation and relation.number:
            return (f"{end:,}", str(end), f"{end} {relation.unit}") if int(end) > 999 else (str(end),)
        return ()

    def _lead_to(self, id: str) -> Chain:
        """Return a description of an entity by one step, or the entity itself."""
        if self._dice.random() < 0.5:
            return Chain(id)
        options = [
            Chain(str(self._next(fact, id)), (self._step_of(fact, str(self._next(fact, id))),))
            for fact in self._near[id]
            if str(self._next(fact, id)) in self._world.entities
        ]
        options = [each for each in options if "vp" in self._relation(each.steps[0].relation).words]
        options = [each for each in options if self.follow(each)]
        return self._dice.choice(options) if options else Chain(id)

    def _value_facts(self, *, test: Callable[[Relation], bool]) -> list[Fact]:
        return [each for each in self._world.facts if test(self._relation(each.relation)) and self._is_direct(each)]

    def _listed(self, facts: Sequence[Fact], subject: str) -> Hop | None:
        """Return the hop that asks for a list, if one sentence contains all of it."""
        group = self._book.group(facts[0])
        if {*group} != {*facts} or len(group) < 2:
            return None
        relation, kind = (
            self._relation(facts[0].relation),
            self._world.schema.kinds[self._entity(facts[0].subject).kind],
        )
        vp = agree(relation.words["vp"][0], plural=True).replace("{o}", subject)
        place = self._edition.places[group[0]].text
        forms = [join([self._entity(fact.subject).mention for fact in group])]
        forms.append(", ".join(self._entity(fact.subject).title for fact in group))
        at, form = next((at, form) for form in forms if (at := place.lower().find(form.lower())) >= 0)
        answer = place[at : at + len(form)]
        return Hop(question=f"Which {kind.plural} {vp}?", answer=answer, facts=group)

    def _facts_about(self, fact: Fact) -> list[Fact]:
        """Return the facts with the same relation and object, and subjects of the same kind."""
        found = self._world.step(fact.relation, fact.object, forward=False)
        return [each for each in found if self._entity(each.subject).kind == self._entity(fact.subject).kind]

    def _members(self, facts: Sequence[Fact], subject: str) -> list[Hop]:
        if listed := self._listed(facts, subject):
            return [listed]
        step = Step(facts[0].relation, forward=True)
        return [hop for fact in facts for hop in self._hops(Chain(fact.subject, (step,)))]


def clean(text: str) -> str:
    """Return a question with a capital letter and without doubled punctuation."""
    return capitalized(text.replace(",?", "?").replace(",,", ",").replace(",.", "."))
