"""Questions about a world: their answers, hops and evidence follow from the facts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from sleuth.studio.worlds.chains import Chain, Hop, Phrases, Step, clean
from sleuth.studio.worlds.model import Fact, Names, World
from sleuth.studio.worlds.pages import Book, Edition, agree, event

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
_ATTEMPTS = 60


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


class Asker(Phrases):
    """Makes questions about the facts that a world's pages state."""

    def __init__(self, world: World, book: Book, edition: Edition, names: Names, dice: Random) -> None:
        super().__init__(world, book, edition, dice)
        self._names = names

    def ask_all(self) -> list[Question]:
        """Return the questions of a world by type, each meaning once."""
        makers: Mapping[str, Sequence[Callable[[], Question | None]]] = {
            "single": (self._single,),
            "bridge": (self._bridge,),
            "comparison": (self._comparison,),
            "yes_no": (self._same, self._fact),
            "count": (self._count,),
            "date_arithmetic": (self._years, self._age, self._relative),
            "intersection": (self._intersection,),
            "false_premise": (self._false_premise,),
            "namesake": (self._namesake,),
            "absent": (self._absent,),
        }
        found: dict[tuple[Any, ...], Question] = {}
        for type, quota in QUOTAS.items():
            own: list[Question] = []
            for _ in range(_ATTEMPTS * quota):
                made = self._dice.choice(makers[type])()
                if made and made.program not in found and _is_wanted(made, own):
                    found[made.program] = made
                    own.append(made)
                if len(own) == quota:
                    break
        return list(found.values())

    def _single(self) -> Question | None:
        return self._chained(1)

    def _bridge(self) -> Question | None:
        return self._chained(self._dice.choice((2, 2, 3, 3, 4)))

    def _chained(self, hops: int) -> Question | None:
        """Return a question along a random walk, each step on a page of its own."""
        chain = Chain(self._dice.choice(list(self._world.entities)))
        facts, visited = list[Fact](), [chain.start]
        for number in range(hops):
            options = [
                (step, fact)
                for step, fact in self._steps_from(visited[-1])
                if str(self._next(fact, visited[-1])) not in visited
                and self._page(fact) not in map(self._page, facts)
                and (number == hops - 1 or self._next(fact, visited[-1]) in self._world.entities)
            ]
            if not options:
                return None
            step, fact = self._dice.choice(options)
            chain = chain.then(step)
            facts.append(fact)
            visited.append(str(self._next(fact, visited[-1])))
        text = self._asked(chain.steps[-1], self.describe(Chain(chain.start, chain.steps[:-1])), fact)
        end = self._next(fact, visited[-2])
        answer, kind = self._text(end, fact), "single" if hops == 1 else "bridge"
        if answer in text:
            return None
        own = tuple(self._hops(chain))
        program = ("what", chain)
        return Question(
            text=text, answer=answer, type=kind, program=program, hops=own, aliases=self._aliases(end, fact)
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
        described = tuple(
            phrase for phrase, fact, chain in zip((a, b), pair, chains, strict=True) if fact is best and chain.steps
        )
        return Question(
            text=clean(text.replace("{a}", a).replace("{b}", b)),
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
        return Question(text=clean(text), answer=answer, type="yes_no", program=program, hops=tuple(hops))

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
            text=clean(text),
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
            if fact.subject != person.id
            and 5 <= int(fact.object) - int(born.object) <= (person.last or 0) - (person.year or 0)
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
            text=clean(text),
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
            text=clean(self._dice.choice(self._relation(fact.relation).words["ask"]).replace("{s}", subject)),
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
        text = clean(text.replace("{vp}", vps[0]).replace("{also}", vps[1]))
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
            text=clean(text),
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


def _is_wanted(made: Question, own: Sequence[Question]) -> bool:
    """Return whether a question reads well, asks for a relation that is new or rare, or balances "yes" and "no"."""
    if re.search(r"\b(\w+) \1\b", made.text):
        return False
    if made.type == "yes_no":
        return sum(each.answer == made.answer for each in own) * 2 < QUOTAS["yes_no"]
    last = [each.facts[-1].relation for each in own if each.facts]
    return made.type not in ("single", "bridge") or last.count(made.facts[-1].relation) < 2
