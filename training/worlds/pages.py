"""Pages of a world: every fact is stated in exactly one sentence, on its subject's or its object's page."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from random import Random

from training.worlds.model import Entity, Fact, World, with_articles
from training.worlds.schema import Relation, Style

BACK, INSERTED, LINKED, RELATIVE, AGED, LONG = 0.35, 0.4, 0.5, 0.3, 0.35, 0.1
"""Shares: facts on the object's page, insertions, sentences with a link, relative dates, ages at death, long pages."""
SHORT, FAR = 4, 30
"""Fewest facts and fillers of a page; most years between a relative date and the event that it refers to."""
_CHOICE = re.compile(r"\{([^{}|]*)\|([^{}|]*)\}")
COUNTED = ["", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """The sentence that states a fact."""

    page: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """An encyclopaedia's page."""

    id: str
    title: str
    text: str
    style: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Edition:
    """The pages of a world, perhaps without some facts, and the places of all others."""

    pages: list[Page]
    places: dict[Fact, Place]


@dataclass(kw_only=True, slots=True)
class _Unit:
    """A sentence in the making: facts of one relation, or a sentence without facts."""

    facts: tuple[Fact, ...] = ()
    back: bool = False
    template: str = ""
    clause: str = ""
    link: str = ""
    draw: float = 0.0
    inserts: bool = False
    anchor: Fact | None = None


@dataclass(kw_only=True, slots=True)
class _Plan:
    subject: Entity
    style: Style
    units: list[_Unit] = field(default_factory=list)
    lead: str = ""
    end: str = ""
    number: int = 0


def agree(template: str, *, plural: bool) -> str:
    """Return a template with its verbs in the singular or plural."""
    return _CHOICE.sub(r"\2" if plural else r"\1", template)


def join(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def capitalized(text: str) -> str:
    """Return a text with a capital first letter."""
    return text[:1].upper() + text[1:]


def value_text(world: World, fact: Fact) -> str:
    """Return the object of a fact as an answer: a number with its unit, an entity's name."""
    relation = world.schema.relations[fact.relation]
    if relation.object:
        return world.entities[str(fact.object)].name
    return f"{fact.object:,} {relation.unit}" if relation.number else str(fact.object)


def years(number: int) -> str:
    """Return a number of years in words."""
    spelled = COUNTED[number] if number < len(COUNTED) else str(number)
    return f"{spelled} year{'s' if number > 1 else ''}"


class Book:
    """The plan of all pages: what each of them states, in which order and with which words."""

    def __init__(self, world: World, dice: Random) -> None:
        self.world, self._dice = world, dice
        self._plans = {id: self._empty(each) for id, each in world.entities.items()}
        for fact in world.facts:
            self._assign(fact)
        for plan in self._plans.values():
            self._order(plan)
        self.relative: dict[Fact, Fact] = {}
        """Facts whose date is stated relative to another fact, or to a person's birth."""
        for plan in self._plans.values():
            self._relate(plan)

    def write(self, dropped: Collection[Fact] = ()) -> Edition:
        """Return the pages without some facts; nothing else in them changes."""
        edition = Edition(pages=[], places={})
        for plan in self._plans.values():
            _Writer(self.world, plan, dropped).write(edition)
        return edition

    def group(self, fact: Fact) -> tuple[Fact, ...]:
        """Return the facts that the sentence of a fact lists together."""
        return next(unit.facts for plan in self._plans.values() for unit in plan.units if fact in unit.facts)

    def when(self, fact: Fact) -> str:
        """Return the relative date of a fact."""
        return relative_date(self.world, fact, self.relative[fact])

    def _empty(self, entity: Entity) -> _Plan:
        styles = [each for each in self.world.schema.styles if entity.kind in each.kinds or not each.kinds]
        style = self._dice.choices(styles, [each.weight for each in styles])[0]
        lead, end = (self._dice.choice(style.words.get(part, [""])) for part in ("lead", "end"))
        return _Plan(subject=entity, style=style, lead=lead, end=end, number=self._dice.randint(100, 999))

    def _assign(self, fact: Fact) -> None:
        """Put a fact on a page, together with others that are listed in the same sentence."""
        relation = self.world.schema.relations[fact.relation]
        words = relation.words
        back = "back" in words and ("tell" not in words or self._dice.random() < BACK)
        page = str(fact.object) if back else fact.subject
        if relation.symmetric and self._dice.random() < 0.5:
            page = str(fact.object)
        units = self._plans[page].units
        listed = next((unit for unit in units if back and unit.back and unit.facts[0].relation == fact.relation), None)
        if listed:
            listed.facts = (*listed.facts, fact)
            return
        later = fact.relation == "died" and self._plans[page].style.form == "prose" and self._dice.random() < AGED
        template = self._dice.choice(words["back" if back else "later" if later else "tell"])
        clause = self._dice.choice(words["clause"]) if "clause" in words and not back else ""
        units.append(_Unit(facts=(fact,), back=back, template=template, clause=clause))

    def _order(self, plan: _Plan) -> None:
        """Shuffle a page's sentences, and add some without facts."""
        dice, kind = self._dice, self.world.schema.kinds[plan.subject.kind]
        most = len(kind.fill) if dice.random() < LONG else min(3, len(kind.fill))
        fewest = max(1, SHORT - len(plan.units))
        for template in dice.sample(kind.fill, min(len(kind.fill), max(fewest, dice.randint(1, most)))):
            values = {key: dice.choice(self.world.schema.lists[key]) for key in ("w", "m", "c")}
            filled = re.sub(r"\{([wmc])\}", lambda found: values[found[1]], template)  # noqa: B023 - used immediately
            plan.units.append(_Unit(template=with_articles(filled.replace("{d}", str(dice.randint(4, 48))))))
        dice.shuffle(plan.units)
        is_named = kind.noun == "person" or kind.noun in plan.subject.name.casefold()
        if plan.style.form == "prose" and not plan.lead and not is_named:
            plan.units.sort(key=lambda unit: not unit.clause or unit.template.startswith("{o}"))
            plan.units.insert(0, _Unit(template=dice.choice(self.world.schema.intro), inserts=dice.random() < 0.85))
        links = list(plan.style.words.get("link", ()))
        dice.shuffle(links)
        for unit in plan.units:
            unit.draw = dice.random()
            unit.link = links.pop() if links and dice.random() < LINKED else ""
            unit.inserts = unit.inserts or dice.random() < INSERTED

    def _relate(self, plan: _Plan) -> None:
        """Replace some dates by "two years after …", and note ages at death."""
        for unit in plan.units:
            [fact] = unit.facts if len(unit.facts) == 1 else [None]
            if fact and fact not in self.relative.values():
                unit.anchor = self._anchor(unit, fact, plan)
            if fact and unit.anchor:
                self.relative[fact] = unit.anchor
                unit.clause = ""
            elif "{age}" in unit.template:
                unit.template = self.world.schema.relations["died"].words["tell"][0]

    def _anchor(self, unit: _Unit, fact: Fact, plan: _Plan) -> Fact | None:
        """Return a date that is stated in full, to which another one can refer."""
        able = [each for each in self.world.facts if self.world.schema.relations[each.relation].value]
        able = [each for each in able if each not in self.relative]
        if "{age}" in unit.template:
            return next((each for each in able if (each.subject, each.relation) == (fact.subject, "born")), None)
        if "{when}" not in unit.template or plan.style.form != "prose" or self._dice.random() >= RELATIVE:
            return None
        able = [each for each in able if 0 < int(fact.object) - int(each.object) <= FAR]
        able = [each for each in able if not self.world.is_related(fact.subject, each.subject)]
        able = [each for each in able if each.subject != fact.subject]
        return self._dice.choice(able) if able else None


def event(world: World, fact: Fact, way: int = 0) -> str:
    """Return a dated fact as an event: "the founding of …"."""
    words = world.schema.relations[fact.relation].words["event"]
    return words[way % len(words)].replace("{s}", world.entities[fact.subject].mention)


def relative_date(world: World, fact: Fact, anchor: Fact) -> str:
    """Return a date as years after another fact, or as an age."""
    gap = int(fact.object) - int(anchor.object)
    if anchor.subject == fact.subject:
        return f"at the age of {gap}"
    return f"{years(gap)} after {event(world, anchor)}"


class _Writer:
    """One page: what precedes a sentence decides how it refers to the page's subject."""

    def __init__(self, world: World, plan: _Plan, dropped: Collection[Fact]) -> None:
        self._world, self._plan, self._dropped = world, plan, dropped
        self._text = ""
        self._before: list[Entity] | None = None
        """Entities that the previous sentence mentions; None before the first."""
        self._places: dict[Fact, tuple[int, int]] = {}

    def write(self, edition: Edition) -> None:
        """Add the page to an edition."""
        subject, style = self._plan.subject, self._plan.style
        kept = [unit for unit in self._plan.units if not self._is_dropped(unit)]
        {"prose": self._prose, "table": self._table, "catalogue": self._catalogue}[style.form](kept)
        page = Page(id=subject.id, title=subject.title, text=self._text, style=style.name)
        edition.pages.append(page)
        for fact, (start, end) in self._places.items():
            edition.places[fact] = Place(page=page.id, text=page.text[start:end], start=start, end=end)

    def _is_dropped(self, unit: _Unit) -> bool:
        return any(fact in self._dropped for fact in unit.facts)

    def _append(self, sentence: str, units: Sequence[_Unit], gap: str = " ") -> None:
        self._text += (gap if self._text else "") + sentence
        span = (len(self._text) - len(sentence), len(self._text))
        self._places |= {fact: span for unit in units for fact in unit.facts}

    def _prose(self, units: list[_Unit]) -> None:
        if self._plan.lead:
            self._append(capitalized(self._plan.lead.replace("{s}", self._plan.subject.called)), ())
            self._before = []
        else:  # the first sentence names the subject
            first = next((unit for unit in units if "{s}" in unit.template), None)
            units.sort(key=lambda unit: unit is not first)
        while units:
            unit, *units = units
            other = units[0] if units and self._may_insert(unit, units[0]) else None
            units = units[1:] if other else units
            self._append(self._sentence(unit, other), [unit, other] if other else [unit])
        if self._plan.end:
            self._append(self._plan.end, ())

    def _may_insert(self, unit: _Unit, other: _Unit) -> bool:
        leads = unit.template.startswith("{s} ") and not unit.back and bool(unit.facts)
        return unit.inserts and bool(other.clause) and ("{clause}" in unit.template or leads)

    def _sentence(self, unit: _Unit, other: _Unit | None) -> str:
        """Return a sentence, with another unit's fact as an insertion."""
        subject, kind = self._plan.subject, self._world.schema.kinds[self._plan.subject.kind]
        others = [entity for each in (unit, other) if each for entity in self._entities(each)]
        clause = self._fill(other.clause, other, "") if other else ""
        intro = "{clause}" in unit.template
        called = subject.called if intro else self._called(unit, others, bare=bool(other))
        text = self._fill(unit.template, unit, called)
        if intro:
            noun = with_articles(f"a {kind.noun}")
            text = text.replace("{be}", kind.be).replace("{noun}", noun)
            text = text.replace("{clause}", f" {clause}" if clause else "")
        elif clause:
            text = f"{called}, {clause}, {text.removeprefix(called).lstrip()}"
        self._before = others
        if not (unit.link and self._text):
            return capitalized(text)
        return f"{unit.link} {text if unit.template.startswith('{') else text[:1].lower() + text[1:]}"

    def _entities(self, unit: _Unit) -> list[Entity]:
        ids = [str(each) for fact in unit.facts for each in (fact.subject, fact.object)]
        ids += [unit.anchor.subject] if unit.anchor else []
        return [self._world.entities[id] for id in ids if id in self._world.entities and id != self._plan.subject.id]

    def _called(self, unit: _Unit, others: Sequence[Entity], *, bare: bool) -> str:
        """Return how a sentence refers to the page's subject: by name, as "the town", or by a pronoun."""
        subject, noun = self._plan.subject, self._world.schema.kinds[self._plan.subject.kind].noun
        near = [*others, *(self._before or ())]
        is_person = subject.kind == "person"
        first = self._before is None
        rivals = [each for each in self._before or () if (each.kind == "person") == is_person]
        if not (first or bare or rivals) and unit.template.startswith("{s}") and unit.draw < 0.6:
            return ("she" if subject.she else "he") if is_person else "it"
        if first:
            return subject.called
        if is_person:
            return subject.name.split()[-1]
        same = any(each.kind == subject.kind for each in near)
        return subject.called if same or unit.draw > 0.75 else f"the {noun}"

    def _fill(self, template: str, unit: _Unit, called: str) -> str:
        """Return a template with its subject and object."""
        subject = self._plan.subject
        texts = [self._object(fact, unit) for fact in unit.facts]
        he, his, him = ("she", "her", "her") if subject.she else ("he", "his", "him")
        values = {"o": join(texts) if texts else "", "he": he, "his": his, "him": him, "s": called}
        if unit.facts and "{when}" in template:
            fact = unit.facts[0]
            values["when"] = f"in {values['o']}"
            if unit.anchor:
                values["when"] = relative_date(self._world, fact, unit.anchor)
        if unit.anchor and "{age}" in template:
            values["age"] = str(int(unit.facts[0].object) - int(unit.anchor.object))
        template = agree(template, plural=len(texts) > 1)
        possessive = {"she": "her", "he": "his", "it": "its"}.get(called, f"{called}'s")
        template = template.replace("{s}'s", possessive)
        for key, value in values.items():
            template = template.replace(f"{{{key}}}", value)
        return template

    def _object(self, fact: Fact, unit: _Unit, *, plain: bool = False) -> str:
        other = fact.subject if fact.object == self._plan.subject.id else fact.object
        if entity := self._world.entities.get(str(other)):
            return entity.title if plain else entity.mention
        text = value_text(self._world, fact)
        trade = self._world.schema.relations[fact.relation].word == "trade"
        return with_articles(f"a {text}") if trade and not plain else text

    def _table(self, units: Sequence[_Unit]) -> None:
        self._append(self._plan.subject.name, ())
        for unit in units:
            if unit.facts:
                self._append(f"- {self._labeled(unit)}", [unit], "\n")
            else:
                self._append(f"- Remark: {self._remark(unit)}", [unit], "\n")

    def _catalogue(self, units: Sequence[_Unit]) -> None:
        noun = self._world.schema.kinds[self._plan.subject.kind].noun
        kind = "" if noun == "person" else f" ({noun})"
        self._append(f"No. {self._plan.number}: {self._plan.subject.name}{kind}.", ())
        for unit in units:
            self._append(f"{self._labeled(unit)}." if unit.facts else capitalized(self._remark(unit)), [unit])

    def _remark(self, unit: _Unit) -> str:
        person = self._plan.subject.kind == "person"
        return self._fill(
            unit.template, unit, self._plan.subject.name.split()[-1] if person else self._plan.subject.called
        )

    def _labeled(self, unit: _Unit) -> str:
        relation: Relation = self._world.schema.relations[unit.facts[0].relation]
        texts = [self._object(fact, unit, plain=True) for fact in unit.facts]
        return f"{relation.label[unit.back]}: {', '.join(texts)}"
