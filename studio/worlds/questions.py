"""Questions about a world: their answers, hops and evidence follow from the facts."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

from sleuth.studio.worlds.model import Entity, Fact, Names, World
from sleuth.studio.worlds.pages import Book, Edition, agree, capitalized, event, join, value_text
from sleuth.studio.worlds.schema import Relation

QUOTAS: Mapping[str, int] = {
    "single": 6,
    "bridge": 15,
    "comparison": 5,
    "yes_no": 6,
    "count": 4,
    "date_arithmetic": 6,
    "intersection": 4,
    "false_premise": 5,
    "namesake": 3,
    "absent": 3,
}
"""Questions of each type in a world; fewer if it has not enough facts for them."""
REMOVED = 12
"""Questions of a world whose telling sentence is missing in its second edition."""
UNANSWERABLE = ("false_premise", "namesake", "absent", "removed")
_IMPLIED = frozenset({"town_region", "region_country"})
"""Relations that others imply: a capital lies in its country."""
_ATTEMPTS = 60


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question; `program` is its meaning, from which the answer can be computed again.

    `pages` are gold pages without a fact, where an answer would be expected.
    """

    text: str
    answer: str
    type: str
    program: tuple[Any, ...]
    hops: tuple[Hop, ...]
    aliases: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
    reason: str = ""
    premise: str = ""
    id: str = ""
    pair: str = ""

    @property
    def facts(self) -> tuple[Fact, ...]:
        """The facts of all hops, each once."""
        return tuple(dict.fromkeys(fact for hop in self.hops for fact in hop.facts))


class Asker:
    """Makes questions about the facts that a world's pages state."""

    def __init__(self, world: World, book: Book, edition: Edition, names: Names, dice: Random) -> None:
        self._world, self._book, self._edition = world, book, edition
        self._names, self._dice = names, dice
        self._near: dict[str, list[Fact]] = defaultdict(list)
        for fact in world.facts:
            self._near[fact.subject].append(fact)
            self._near[str(fact.object)].append(fact)

    def ask_all(self) -> list[Question]:
        """Return the questions of a world by type, each text once."""
        makers: Mapping[str, Callable[[], Question | None]] = {
            "single": lambda: self._chained(1),
            "bridge": lambda: self._chained(self._dice.choice((2, 2, 3, 3, 4))),
            "comparison": self._comparison,
            "yes_no": lambda: self._dice.choice((self._same, self._fact))(),
            "count": self._count,
            "date_arithmetic": lambda: self._dice.choice((self._years, self._age, self._relative))(),
            "intersection": self._intersection,
            "false_premise": self._false_premise,
            "namesake": self._namesake,
            "absent": self._absent,
        }
        found: dict[str, Question] = {}
        for type, make in makers.items():
            own: list[Question] = []
            relations: Counter[str] = Counter()
            for _ in range(_ATTEMPTS * QUOTAS[type]):
                made = make()
                if made and made.text not in found and self._is_wanted(made, own, relations):
                    found[made.text] = made
                    own.append(made)
                    relations.update({fact.relation for fact in made.facts[-1:]})
                if len(own) == QUOTAS[type]:
                    break
        return list(found.values())

    def _is_wanted(self, made: Question, own: Sequence[Question], relations: Mapping[str, int]) -> bool:
        """Return whether a question adds variety: a new last relation, and as many of "yes" as of "no"."""
        same = [each for each in own if each.answer == made.answer]
        if made.type == "yes_no" and len(same) * 2 >= QUOTAS["yes_no"]:
            return False
        return made.type not in ("single", "bridge") or all(relations[fact.relation] < 2 for fact in made.facts[-1:])

    # Descriptions

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

    def follow(self, chain: Chain) -> tuple[list[Fact], str | int] | None:
        """Return a chain's facts and its end; None if a step leads nowhere or to several."""
        facts, at = list[Fact](), chain.start
        for step in chain.steps:
            found = self._world.step(step.relation, at, forward=step.forward)
            if len(found) != 1 or not self._is_direct(found[0]):
                return None
            facts.append(found[0])
            at = self._next(found[0], at)  # type: ignore[assignment] - only a last step leads to a number
        return facts, at

    def _steps_from(self, id: str) -> list[tuple[Step, Fact]]:
        """Return the unambiguous steps from an entity."""
        steps = [(self._step_of(fact, id), fact) for fact in self._near[id]]
        number = Counter(step for step, _ in steps)
        return [
            (step, fact)
            for step, fact in steps
            if number[step] == 1 and self._is_direct(fact) and (step.forward or "vp" in self._relation(step.relation).words)
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
        noun = self._noun(step, self.follow(chain)[0][-1])  # type: ignore[index] - a followed chain
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
            return _clean(chosen.replace("{s}", subject))
        frame = self._dice.choice(frames[f"which{who}"]) if way is None else frames[f"which{who}"][way]
        vp = self._dice.choice(words["vp"]) if way is None else words["vp"][0]
        return _clean(frame.replace("{noun}", noun).replace("{vp}", agree(vp, plural=False)).replace("{o}", subject))

    def _hops(self, chain: Chain, before: int = 0) -> list[Hop]:
        """Return the hops of a chain that follows `before` others."""
        facts, _ = self.follow(chain) or ([], "")
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
        options = [each for each in options if (self.follow(each) or ([], ""))[1] == id]
        return self._dice.choice(options) if options else Chain(id)

    def _value_facts(self, *, test: Callable[[Relation], bool]) -> list[Fact]:
        return [each for each in self._world.facts if test(self._relation(each.relation)) and self._is_direct(each)]

    # Types

    def _chained(self, hops: int) -> Question | None:
        chain = Chain(self._dice.choice(list(self._world.entities)))
        at: str | int = chain.start
        visited, pages = {at}, list[str]()
        for number in range(hops):
            options = [
                (step, fact)
                for step, fact in self._steps_from(str(at))
                if self._next(fact, str(at)) not in visited and self._page(fact) not in pages
            ]
            last = number == hops - 1
            options = [each for each in options if last or self._next(each[1], str(at)) in self._world.entities]
            if not options:
                return None
            step, fact = self._dice.choice(options)
            chain, at = chain.then(step), self._next(fact, str(at))
            visited.add(at)
            pages.append(self._page(fact))
        facts, end = self.follow(chain) or ([], "")
        inner = self.describe(Chain(chain.start, chain.steps[:-1]))
        text = self._asked(chain.steps[-1], inner, facts[-1])
        answer = self._text(end, facts[-1])
        if not facts or answer in text:
            return None
        type = "single" if hops == 1 else "bridge"
        return Question(
            text=text,
            answer=answer,
            type=type,
            program=("what", chain),
            hops=tuple(self._hops(chain)),
            aliases=self._aliases(end, facts[-1]),
        )

    def _comparison(self) -> Question | None:
        first = self._dice.choice(self._value_facts(test=lambda each: bool(each.more)))
        kind = self._entity(first.subject).kind
        others = [
            each
            for each in self._value_facts(test=lambda each: each.name == first.relation)
            if self._entity(each.subject).kind == kind and each.object != first.object
        ]
        if not others:
            return None
        pair = [first, self._dice.choice(others)]
        chains = [self._lead_to(fact.subject) for fact in pair]
        relation, more = self._relation(first.relation), self._dice.random() < 0.5
        frames = self._world.schema.frames["compare_who" if kind == "person" else "compare"]
        a, b = (self.describe(chain) for chain in chains)
        text = self._dice.choice(frames).replace("{cmp}", relation.more if more else relation.less)
        best = max(pair, key=lambda fact: int(fact.object) if more else -int(fact.object))
        hops = list[Hop]()
        step = Step(first.relation, forward=True)
        for chain in chains:
            hops += self._hops(chain.then(step), len(hops))
        described = tuple(phrase for phrase, fact in zip((a, b), pair, strict=True) if fact is best)
        return Question(
            text=_clean(text.replace("{a}", a).replace("{b}", b)),
            answer=self._entity(best.subject).name,
            type="comparison",
            program=("more" if more else "less", first.relation, *chains),
            hops=tuple(hops),
            aliases=tuple(dict.fromkeys((*self._aliases(best.subject), *described))),
        )

    def _functional(self) -> list[Fact]:
        """Return the facts that tell the only object of a subject."""
        chosen = [each for each in self._world.facts if "vp" in self._relation(each.relation).words]
        return [
            each
            for each in chosen
            if self._relation(each.relation).object and not self._relation(each.relation).per_object
        ]

    def _same(self) -> Question | None:
        facts, want = self._functional(), self._dice.random() < 0.5
        first = self._dice.choice(facts)
        others = [each for each in facts if each.relation == first.relation and each.subject != first.subject]
        others = [each for each in others if self._entity(each.subject).kind == self._entity(first.subject).kind]
        others = [each for each in others if (each.object == first.object) == want]
        if not others:
            return None
        pair = [first, self._dice.choice(others)]
        step = Step(first.relation, forward=True)
        chains = [Chain(fact.subject, (step,)) for fact in pair]
        np = self._dice.choice(self._relation(first.relation).words["np"])
        a, b = (np.replace("{s}", self._entity(fact.subject).mention) for fact in pair)
        text = self._dice.choice(self._world.schema.frames["same"]).replace("{a}", a).replace("{b}", b)
        hops = [*self._hops(chains[0]), *self._hops(chains[1], 1)]
        return self._yes_no(text, want, ("same", *chains), hops)

    def _fact(self) -> Question | None:
        fact, want = self._dice.choice(self._functional()), self._dice.random() < 0.5
        step, relation = Step(fact.relation, forward=True), self._relation(fact.relation)
        others = [each.id for each in self._world.of(relation.object) if each.id not in (fact.object, fact.subject)]
        named = str(fact.object) if want else self._dice.choice(others)
        vp = agree(self._dice.choice(relation.words["vp"]), plural=False).replace("{o}", self._entity(named).mention)
        text = self._dice.choice(self._world.schema.frames["fact"]).replace("{vp}", vp)
        text = text.replace("{s}", self._entity(fact.subject).mention)
        chain = Chain(fact.subject, (step,))
        return self._yes_no(text, want, ("is", chain, named), self._hops(chain))

    def _yes_no(self, text: str, want: bool, program: tuple[Any, ...], hops: Sequence[Hop]) -> Question:
        answer = "yes" if want else "no"
        return Question(text=_clean(text), answer=answer, type="yes_no", program=program, hops=tuple(hops))

    def _listed(self, facts: Sequence[Fact], subject: str) -> Hop | None:
        """Return the hop that asks for a list, if one sentence contains all of it."""
        group = self._book.group(facts[0])
        if {*group} != {*facts} or len(group) < 2:
            return None
        relation, kind = self._relation(facts[0].relation), self._world.schema.kinds[self._entity(facts[0].subject).kind]
        vp = agree(relation.words["vp"][0], plural=True).replace("{o}", subject)
        place = self._edition.places[group[0]].text
        forms = [join([self._entity(fact.subject).mention for fact in group])]
        forms.append(", ".join(self._entity(fact.subject).title for fact in group))
        answer = next(form for form in forms if form in place)
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

    def _count(self) -> Question | None:
        able = [each for each in self._world.facts if "vp" in self._relation(each.relation).words]
        fact = self._dice.choice([each for each in able if self._relation(each.relation).object])
        facts = self._facts_about(fact)
        if len(facts) < 2:
            return None
        chain = self._lead_to(str(fact.object))
        if chain.steps and fact.relation == chain.steps[0].relation:
            return None
        before = self._hops(chain)
        kind = self._world.schema.kinds[self._entity(fact.subject).kind]
        vp = agree(self._dice.choice(self._relation(fact.relation).words["vp"]), plural=True)
        text = self._dice.choice(self._world.schema.frames["count"]).replace("{plural}", kind.plural)
        text = text.replace("{vp}", vp).replace("{o}", self.describe(chain))
        hops = self._members(facts, "#1" if before else self._entity(str(fact.object)).mention)
        words = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
        program = ("count", chain, fact.relation, self._entity(fact.subject).kind)
        aliases = words[len(facts) : len(facts) + 1]
        return Question(
            text=_clean(text),
            answer=str(len(facts)),
            type="count",
            program=program,
            hops=(*before, *hops),
            aliases=aliases,
        )

    def _dates(self) -> list[Fact]:
        return self._value_facts(test=lambda each: bool(each.value) and "event" in each.words)

    def _years(self) -> Question | None:
        a, b = sorted(self._dice.sample(self._dates(), 2), key=lambda fact: int(fact.object))
        if a.object == b.object or a.subject == b.subject:
            return None
        text = self._dice.choice(self._world.schema.frames["years"])
        text = text.replace("{a}", event(self._world, a)).replace("{b}", event(self._world, b))
        return self._arithmetic(text, [a, b])

    def _age(self) -> Question | None:
        born = self._dice.choice(self._value_facts(test=lambda each: each.name == "born"))
        person = self._entity(born.subject)
        later = [
            fact
            for fact in self._dates()
            if fact.subject != person.id and 5 <= int(fact.object) - int(born.object) <= (person.last or 0) - (person.year or 0)
        ]
        if not later:
            return None
        fact = self._dice.choice(later)
        text = self._dice.choice(self._world.schema.frames["age"]).replace("{p}", person.mention)
        return self._arithmetic(text.replace("{e}", event(self._world, fact)), [born, fact])

    def _arithmetic(self, text: str, facts: Sequence[Fact]) -> Question:
        chains = [Chain(fact.subject, (Step(fact.relation, forward=True),)) for fact in facts]
        gap = int(facts[1].object) - int(facts[0].object)
        hops = [hop for chain in chains for hop in self._hops(chain)]
        return Question(
            text=_clean(text),
            answer=str(gap),
            type="date_arithmetic",
            program=("years", *chains),
            hops=tuple(hops),
            aliases=(f"{gap} years",) if gap > 1 else ("one year", "1 year"),
        )

    def _relative(self) -> Question | None:
        if not self._book.relative:
            return None
        fact = self._dice.choice(list(self._book.relative))
        anchor, step = self._book.relative[fact], Step(fact.relation, forward=True)
        subject = self._entity(fact.subject).mention
        phrase, first = self._book.when(fact), self._asked(step, subject, fact, way=0)
        if anchor.subject == fact.subject:
            phrase, first = phrase.removeprefix("at the age of "), f"At what age did {subject} die?"
        second = self._hops(Chain(anchor.subject, (Step(anchor.relation, forward=True),)))
        return Question(
            text=_clean(self._dice.choice(self._relation(fact.relation).words["ask"]).replace("{s}", subject)),
            answer=str(fact.object),
            type="date_arithmetic",
            program=("value", fact.subject, fact.relation),
            hops=(Hop(question=first, answer=phrase, facts=(fact,)), *second),
        )

    def _intersection(self) -> Question | None:
        able = [each for each in self._world.facts if "vp" in self._relation(each.relation).words]
        able = [each for each in able if self._relation(each.relation).object]
        first = self._dice.choice([each for each in able if len(self._facts_about(each)) > 1])
        others = [each for each in able if each.subject == first.subject and each.relation != first.relation]
        others = [each for each in others if len(self._facts_about(each)) > 1] or others
        if not others:
            return None
        pair = [first, self._dice.choice(others)]
        sets = [{fact.subject for fact in self._facts_about(each)} for each in pair]
        if sets[0] & sets[1] != {first.subject}:
            return None
        kind = self._entity(first.subject).kind
        frames = self._world.schema.frames["both_who" if kind == "person" else "both"]
        vps = [agree(self._dice.choice(self._relation(each.relation).words["vp"]), plural=False) for each in pair]
        vps = [vp.replace("{o}", self._entity(str(each.object)).mention) for vp, each in zip(vps, pair, strict=True)]
        text = self._dice.choice(frames).replace("{noun}", self._world.schema.kinds[kind].noun)
        text = _clean(text.replace("{vp}", vps[0]).replace("{also}", vps[1]))
        answer = self._entity(first.subject).name
        if answer in text:
            return None
        hops = list[Hop]()
        for fact in pair:
            listed = self._listed(self._facts_about(fact), self._entity(str(fact.object)).mention)
            hops += [listed] if listed else self._hops(Chain(fact.subject, (Step(fact.relation, forward=True),)))
        return Question(
            text=text,
            answer=answer,
            type="intersection",
            program=("both", kind, *((each.relation, each.object) for each in pair)),
            hops=tuple(hops),
            aliases=self._aliases(first.subject),
        )

    def _false_premise(self) -> Question | None:
        """Ask about an entity that is described as the object, or the member of a complete list, that it is not."""
        fact = self._dice.choice([each for each in self._world.facts if "vp" in self._relation(each.relation).words])
        relation = self._relation(fact.relation)
        listed, right = bool(relation.per_object), str(fact.object)
        facts, kind = [fact], relation.object
        if listed:
            facts, kind = self._world.step(fact.relation, fact.object, forward=False), relation.subjects[0]
        known = {each.subject if listed else each.object for each in facts}
        wrong = [each for each in self._world.of(kind) if each.id not in known and each.id != fact.subject]
        lures = [(each, step, own) for each in wrong for step, own in self._steps_from(each.id) if step.forward]
        if not lures or not relation.object:
            return None
        entity, step, own = self._dice.choice(lures)
        if listed:
            vp = agree(self._dice.choice(relation.words["vp"]), plural=False)
            phrase = f"who {vp}".replace("{o}", self._entity(right).mention)
            hop = self._listed(facts, self._entity(right).mention)
            hops = [hop] if hop else []
        else:
            phrase = self._dice.choice(relation.words["np"]).replace("{s}", self._entity(fact.subject).mention)
            hops = self._hops(Chain(fact.subject, (Step(fact.relation, forward=True),)))
        asks = [ask for ask in self._relation(step.relation).words["ask"] if "{s}'s" not in ask]
        if not hops or self._text(self._next(own, entity.id), own) in phrase:
            return None
        text = self._dice.choice(asks).replace("{s}", f"{entity.mention}, {phrase},")
        premise = f"{hops[0].question} {hops[0].answer}, not {entity.name}."
        program = ("false", fact.relation, fact.subject if not listed else right, entity.id)
        return Question(
            text=_clean(text),
            answer="",
            type="false_premise",
            program=program,
            hops=tuple(hops),
            reason="false_premise",
            premise=premise,
        )

    def _namesake(self) -> Question | None:
        """Ask for a fact that is known only of an entity with the same name."""
        pair = self._dice.choice(self._world.namesakes)
        asked, other = self._dice.sample(pair, 2)
        known = {self._step_of(fact, asked) for fact in self._near[asked]}
        lures = [(step, fact) for step, fact in self._steps_from(other) if step.forward and step not in known]
        lures = [each for each in lures if not self._relation(each[0].relation).per_object]
        if not lures:
            return None
        step, fact = self._dice.choice(lures)
        text = self._asked(step, self._entity(asked).mention, fact)
        hop = Hop(question=self._asked(step, self._entity(asked).mention, fact, way=0), answer="", facts=())
        program = ("none", asked, fact.relation)
        return Question(
            text=text, answer="", type="namesake", program=program, hops=(hop,), pages=(asked,), reason="namesake"
        )

    def _absent(self) -> Question | None:
        """Ask about an entity that no page mentions."""
        fact = self._dice.choice([each for each in self._world.facts if "ask" in self._relation(each.relation).words])
        entity, styles = self._entity(fact.subject), len(self._world.schema.name_styles)
        name = self._names.new(self._world.schema.kinds[entity.kind], self._dice.randrange(styles))
        called = replace(entity, name=name, note="").mention
        text = self._asked(Step(fact.relation, forward=True), called, fact)
        return Question(text=text, answer="", type="absent", program=("absent", name), hops=(), reason="absent")


def remove(question: Question, dropped: frozenset[Fact]) -> Question:
    """Return a question whose hops lack the answers that the dropped facts, or hops without an answer, would give."""
    missing: set[int] = set()
    hops = list[Hop]()
    for number, hop in enumerate(question.hops, 1):
        if {*hop.facts} & dropped or any(f"#{each}" in hop.question for each in missing):
            missing.add(number)
        hops.append(replace(hop, answer="") if number in missing else hop)
    return replace(
        question, answer="", aliases=(), type="removed", hops=tuple(hops), reason="removed", pair=question.id, id=f"{question.id}-removed"
    )


def removable(question: Question, book: Book) -> list[Fact]:
    """Return the facts without which a question has no answer: nothing else in the world implies them."""
    last = question.hops[-1].facts if question.hops else ()
    if question.type in UNANSWERABLE or (question.type == "count" and len(last) == 1):  # fewer pages, another number
        return []
    dates = {name for name, relation in book.world.schema.relations.items() if relation.value}
    ordered = question.type == "comparison"  # the order of dates may follow from other dates
    kept = [fact for fact in question.facts if fact.relation not in _IMPLIED]
    return [] if ordered and {fact.relation for fact in kept} & dates else kept


def _clean(text: str) -> str:
    """Return a question with a capital letter and without doubled punctuation."""
    return capitalized(text.replace(",?", "?").replace(",,", ",").replace(",.", "."))
