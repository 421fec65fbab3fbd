"""Questions about a world: their answers, hops and evidence follow from the facts."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from training.worlds.chains import Chain, Hop, Phrases, Step, clean
from training.worlds.model import Fact, Names, World
from training.worlds.pages import COUNTED, Book, Edition, agree, event

QUOTAS: Mapping[str, int] = {
    "single": 6,
    "bridge": 15,
    "comparison": 5,
    "yes_no": 6,
    "count": 4,
    "date_arithmetic": 6,
    "intersection": 4,
    "true_premise": 5,
    "false_premise": 5,
    "namesake_known": 3,
    "namesake": 3,
    "absent": 3,
}
"""Questions of each type in a world; fewer if it has not enough facts for them."""
REMOVED = 12
"""Questions of a world whose telling sentence is missing in its second edition."""
UNANSWERABLE = ("false_premise", "namesake", "absent", "removed")
_ATTEMPTS, MOST_HOPS = 60, 4
"""Tries for each question of a quota, and most hops of a count."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question; `program` is its meaning, from which the answer can be computed again.

    `pages` are gold pages without a fact, where an answer would be expected; `pair` is the answerable question of the
    complete edition; `premise` states what a false premise contradicts.
    """

    text: str
    answer: str
    type: str
    program: tuple[Any, ...]
    hops: tuple[Hop, ...]
    aliases: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()
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
            "single": (lambda: self._chained(1),),
            "bridge": (self._bridge,),
            "comparison": (self._comparison,),
            "yes_no": (self._same, self._fact),
            "count": (self._count,),
            "date_arithmetic": (self._years, self._age, self._relative),
            "intersection": (self._intersection,),
            "true_premise": (lambda: self._premise(holds=True),),
            "false_premise": (lambda: self._premise(holds=False),),
            "namesake_known": (lambda: self._namesake(known=True),),
            "namesake": (lambda: self._namesake(known=False),),
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
        return _made(kind, text, answer, ("what", chain), self._hops(chain), aliases=self._aliases(end, fact))

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
        text = text.replace("{a}", a).replace("{b}", b)
        best = max(pair, key=lambda fact: int(fact.object) if more else -int(fact.object))
        hops = list[Hop]()
        step = Step(first.relation, forward=True)
        for chain in chains:
            hops += self._hops(chain.then(step), len(hops))
        described = tuple(
            phrase for phrase, fact, chain in zip((a, b), pair, chains, strict=True) if fact is best and chain.steps
        )
        program = ("more" if more else "less", first.relation, *chains)
        aliases = tuple(dict.fromkeys((*self._aliases(best.subject), *described)))
        return _made("comparison", text, self._entity(best.subject).name, program, hops, aliases=aliases)

    def _linking(self) -> list[Fact]:
        """Return the facts between two entities that can be read in both directions."""
        able = [each for each in self._world.facts if "vp" in self._relation(each.relation).words]
        return [each for each in able if self._relation(each.relation).object]

    def _functional(self) -> list[Fact]:
        """Return those facts whose subject has one object only."""
        return [each for each in self._linking() if not self._relation(each.relation).per_object]

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
        return _made("yes_no", text, "yes" if want else "no", ("same", *chains), hops)

    def _fact(self) -> Question | None:
        fact, want = self._dice.choice(self._functional()), self._dice.random() < 0.5
        step, relation = Step(fact.relation, forward=True), self._relation(fact.relation)
        others = [each.id for each in self._world.of(relation.object) if each.id not in (fact.object, fact.subject)]
        named = str(fact.object) if want else self._dice.choice(others)
        vp = agree(self._dice.choice(relation.words["vp"]), plural=False).replace("{o}", self._entity(named).mention)
        text = self._dice.choice(self._world.schema.frames["fact"]).replace("{vp}", vp)
        text = text.replace("{s}", self._entity(fact.subject).mention)
        chain = Chain(fact.subject, (step,))
        return _made("yes_no", text, "yes" if want else "no", ("is", chain, named), self._hops(chain))

    def _count(self) -> Question | None:
        fact = self._dice.choice(self._linking())
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
        if len(before) + len(hops) > MOST_HOPS:
            return None
        program = ("count", chain, fact.relation, self._entity(fact.subject).kind)
        return _made("count", text, str(len(facts)), program, [*before, *hops], aliases=(COUNTED[len(facts)],))

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
        aliases = (f"{gap} years",) if gap > 1 else ("one year", "1 year")
        return _made("date_arithmetic", text, str(gap), ("years", *chains), hops, aliases=aliases)

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
        text = self._dice.choice(self._relation(fact.relation).words["ask"]).replace("{s}", subject)
        hops = [Hop(question=first, answer=phrase, facts=(fact,)), *second]
        return _made("date_arithmetic", text, str(fact.object), ("value", fact.subject, fact.relation), hops)

    def _intersection(self) -> Question | None:
        able = self._linking()
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
        text = text.replace("{vp}", vps[0]).replace("{also}", vps[1])
        answer = self._entity(first.subject).name
        if answer in text:
            return None
        hops = list[Hop]()
        for fact in pair:
            listed = self._listed(self._facts_about(fact), self._entity(str(fact.object)).mention)
            hops += [listed] if listed else self._hops(Chain(fact.subject, (Step(fact.relation, forward=True),)))
        program = ("both", kind, *((each.relation, each.object) for each in pair))
        return _made("intersection", text, answer, program, hops, aliases=self._aliases(first.subject))

    def _premise(self, *, holds: bool) -> Question | None:
        """Ask about an entity described as an object, or a member of a complete list, which it is or is not."""
        fact = self._dice.choice(self._linking())
        relation, facts = self._relation(fact.relation), [fact]
        kind, known = relation.object, fact.subject
        if relation.per_object:
            facts, kind = self._facts_about(fact), relation.subjects[0]
            known = str(fact.object)
        right = {each.subject if relation.per_object else each.object for each in facts}
        able = [each for each in self._world.of(kind) if (each.id in right) == holds and each.id != known]
        lures = [(each, step, own) for each in able for step, own in self._steps_from(each.id) if step.forward]
        lures = [each for each in lures if each[2] not in facts]
        phrase, hops = self._premise_of(fact, facts)
        if not lures or not hops:
            return None
        entity, step, own = self._dice.choice(lures)
        answer = self._text(self._next(own, entity.id), own)
        asks = [ask for ask in self._relation(step.relation).words["ask"] if "{s}'s" not in ask]
        text = self._dice.choice(asks).replace("{s}", f"{entity.mention}, {phrase},")
        program = (fact.relation, known, entity.id, Chain(entity.id, (step,)))
        if answer in phrase:
            return None
        if holds:
            hops += self._hops(Chain(entity.id, (step,)))
            aliases = self._aliases(self._next(own, entity.id), own)
            return _made("true_premise", text, answer, ("true", *program), hops, aliases=aliases)
        premise = f"{hops[0].question} {hops[0].answer}, not {entity.name}."
        return replace(_made("false_premise", text, "", ("false", *program), hops), premise=premise)

    def _premise_of(self, fact: Fact, facts: Sequence[Fact]) -> tuple[str, list[Hop]]:
        """Return what describes the object of a fact, or each member of a list, and the hop that states it."""
        relation = self._relation(fact.relation)
        if not relation.per_object:
            phrase = self._dice.choice(relation.words["np"]).replace("{s}", self._entity(fact.subject).mention)
            return phrase, self._hops(Chain(fact.subject, (Step(fact.relation, forward=True),)))
        subject = self._entity(str(fact.object)).mention
        listed = self._listed(facts, subject)
        vp = agree(self._dice.choice(relation.words["vp"]), plural=False).replace("{o}", subject)
        return f"who {vp}", [listed] if listed else []

    def _namesake(self, *, known: bool) -> Question | None:
        """Ask for a fact that is known of one of two entities with the same name only."""
        poorer, richer = self._dice.sample(self._dice.choice(self._world.namesakes), 2)
        shared = {self._step_of(fact, poorer) for fact in self._near[poorer]}
        lures = [(step, fact) for step, fact in self._steps_from(richer) if step.forward and step not in shared]
        lures = [each for each in lures if not self._relation(each[0].relation).per_object]
        if not lures:
            return None
        step, fact = self._dice.choice(lures)
        asked = richer if known else poorer
        text = self._asked(step, self._entity(asked).mention, fact)
        if known:
            chain, end = Chain(asked, (step,)), self._next(fact, asked)
            program, aliases = ("what", chain), self._aliases(end, fact)
            return _made("namesake_known", text, self._text(end, fact), program, self._hops(chain), aliases=aliases)
        hop = Hop(question=self._asked(step, self._entity(asked).mention, fact, way=0), answer="", facts=())
        return replace(_made("namesake", text, "", ("none", asked, fact.relation), [hop]), pages=(asked,))

    def _absent(self) -> Question | None:
        """Ask about an entity that no page mentions."""
        fact = self._dice.choice([each for each in self._world.facts if "ask" in self._relation(each.relation).words])
        entity, styles = self._entity(fact.subject), len(self._world.schema.name_styles)
        name = self._names.new(self._world.schema.kinds[entity.kind], self._dice.randrange(styles))
        called = replace(entity, name=name, note="").mention
        text = self._asked(Step(fact.relation, forward=True), called, fact)
        return _made("absent", text, "", ("absent", name), [])


def _made(
    type: str, text: str, answer: str, program: tuple[Any, ...], hops: Sequence[Hop], *, aliases: tuple[str, ...] = ()
) -> Question:
    return Question(text=clean(text), answer=answer, type=type, program=program, hops=tuple(hops), aliases=aliases)


def _is_wanted(made: Question, own: Sequence[Question]) -> bool:
    """Return whether a question reads well, asks for a relation that is new or rare, or balances "yes" and "no"."""
    if re.search(r"\b(\w+) \1\b|\bcame come\b", made.text):
        return False
    if made.type == "yes_no":
        return sum(each.answer == made.answer for each in own) * 2 < QUOTAS["yes_no"]
    last = [each.facts[-1].relation for each in own if each.facts]
    return made.type not in ("single", "bridge") or last.count(made.facts[-1].relation) < 2
