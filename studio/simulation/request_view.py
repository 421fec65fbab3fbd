"""One request as the simulated model sees it: what was shown, what that tells of the gold, and where it errs.

It knows a hop's answer only if a source shows its evidence, a step before has found it, or one sentence has both its
subject and its answer. Who a question is about must be named in it, or be known in the same way.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Any

from sleuth.agents.model import Request
from sleuth.studio.simulation.gold import WHOLE, Gold
from sleuth.studio.simulation.parameters import CLOSED_BOOK, Simulation
from sleuth.studio.simulation.wording import broader, clause, content, excerpt, names, otherwise, says
from sleuth.tools.text import comparison_key, sentences

_ENOUGH = 0.45
"""How much of a question's words must agree for it to be known again."""

_NOTHING = frozenset({"", "not found", "unknown", "none"})


@dataclass(frozen=True, slots=True)
class Quoted:
    """Words of a source; `source` counts from 1."""

    source: int
    quote: str


@dataclass(frozen=True, kw_only=True)
class RequestView:
    """A request, the gold of its run, and the rates of errors."""

    gold: Gold
    simulation: Simulation
    request: Request

    @property
    def given(self) -> dict[str, Any]:
        """The role's input."""
        return self.request.input

    @property
    def question(self) -> str:
        """The question that the role is asked, under whichever name."""
        return str(next(self.given[name] for name in ("step", "question", "query") if name in self.given))

    @property
    def sources(self) -> list[Mapping[str, str]]:
        """What was shown; the first is source 1."""
        return list(self.given.get("sources", ()))

    @cached_property
    def steps(self) -> list[tuple[str, str]]:
        """Questions that were answered before, with their answers."""
        before = [each for name in ("known", "trajectory", "answers") for each in self.given.get(name, ())]
        asked = [(each["question"], each["answer"]) for each in before if "question" in each]
        return asked + [(each["text"], each["finding"]) for each in self.given.get("queries", ())]

    # Chance: made of what is asked and where, never of the order of calls.

    @cached_property
    def _mark(self) -> str:
        place = self.request.sampling.seed if self.request.sampling.temperature > 0 else 0
        asked = json.dumps(self.given, sort_keys=True, ensure_ascii=False, default=str)
        find_answer = f"{self.simulation.seed}\n{self.gold.id}\n{self.request.prompt}\n{place}\n{asked}"
        return sha256(find_answer.encode("utf-8", "replace")).hexdigest()

    def chance(self, label: str) -> Random:
        """Dice of this request, others for each label."""
        return Random(f"{self._mark}{label}")  # noqa: S311 - a simulation, repeatable by design

    def errs(self, kind: str, about: object = "") -> bool:
        """Whether the role makes this error here."""
        rate = self.simulation.rate(self.request.role, kind)
        return rate > 0 and self.chance(f"{kind}{about}").random() < rate

    def knows_unaided(self) -> bool:
        """Whether the question is one of those whose answer the model has in itself: the same for the whole run."""
        dice = Random(f"{self.simulation.seed}\n{self.gold.id}\n{CLOSED_BOOK}")  # noqa: S311 - as above
        return bool(self.gold.answer) and dice.random() < self.simulation.rate("", CLOSED_BOOK)

    # What a question asks for.

    def target(self, question: str) -> int | None:
        """The hop (from 0) that a text asks for, or WHOLE; None where it is neither."""
        if comparison_key(question) == comparison_key(self.gold.question):
            return WHOLE
        if self.simulation.teaching:
            hops: list[int] = [*range(len(self.gold.hops)), WHOLE]
            if wider := [hop for hop in hops if comparison_key(question) == comparison_key(broader(self._asked(hop)))]:
                return wider[0]
        asked = content(question)
        likeness = {at: max(_likeness(asked, way) for way in ways) for at, ways in self.gold.ways.items()}
        best = max(likeness, key=lambda at: likeness[at])
        return best if likeness[best] >= _ENOUGH else None

    def named(self, hop: int, question: str) -> set[int]:
        """The hops (from 1) whose right answers a question names."""
        return {need for need in self.gold.hops[hop].needs() if says(question, self.gold.hops[need - 1].answer)}

    def _asked(self, hop: int) -> str:
        return self.gold.question if hop == WHOLE else self.gold.asked(hop)

    # How it is said. A simulation that teaches speaks as a model should: in the passages' words, and without a mark
    # such as "according to the documents" on what it asks again.

    def statement(self, hop: int) -> str:
        """What a hop (from 0) tells."""
        return self.gold.sentence(hop) if self.simulation.teaching else self.gold.statement(hop)

    def excerpt(self, unit: str, answer: str) -> str:
        """What a citation quotes of a sentence: few words where somebody is to learn to copy them."""
        return clause(unit, answer) if self.simulation.teaching else excerpt(unit, answer)

    def otherwise(self, question: str, way: int) -> str:
        """The question in another way; way 0 leaves it as it is."""
        return broader(question) if way and self.simulation.teaching else otherwise(question, way)

    # What is known.

    @cached_property
    def found(self) -> dict[int, str]:
        """Answers to hops by the steps before, right or wrong."""
        found: dict[int, str] = {}
        for question, answer in self.steps:
            target = self.target(question)
            if target is not None and comparison_key(answer) not in _NOTHING:
                found[target] = answer
        return found

    def shown(self, hop: int) -> Quoted | None:
        """Where the sources tell a hop's answer; None also where the role overlooks it."""
        if hop not in self._shown or self.errs("missed", hop):
            return None
        return self._shown[hop]

    @cached_property
    def _shown(self) -> dict[int, Quoted]:
        shown: dict[int, Quoted] = {}
        for at, source in enumerate(self.sources, start=1):
            for hop in range(len(self.gold.hops)):
                quote = None if hop in shown else self.quote(hop, source.get("title", ""), source["text"])
                if quote:
                    shown[hop] = Quoted(at, quote)
        return shown

    def quote(self, hop: int, title: str, text: str) -> str | None:
        """The words of a text that tell a hop's answer."""
        known = self.gold.hops[hop]
        if not known.answer:
            return None
        read = comparison_key(text)
        if comparison_key(known.evidence) in read:
            return self.excerpt(known.evidence, known.answer)
        if not says(read, known.answer):
            return None
        if (
            comparison_key(self.statement(hop)) in read
            or f"p> {comparison_key(known.predicate)} | o> {comparison_key(known.answer)}" in read
        ):
            return self.excerpt(text, known.answer)
        return self._sentence(hop, title, text)

    def _sentence(self, hop: int, title: str, text: str) -> str | None:
        """A sentence that has the answer, and with its title the subject and most of what is asked."""
        asked, answer = self.gold.asked(hop), self.gold.hops[hop].answer
        subject = frozenset().union(*(content(name) for name in names(asked))) - content(answer)
        wanted = content(asked)
        for unit in sentences(text):
            has = content(f"{title} {unit}")
            if subject and subject <= has and says(unit, answer) and len(wanted & has) >= 0.7 * len(wanted):
                return self.excerpt(unit, answer)
        return None

    def value(self, hop: int, named: Iterable[int] = ()) -> str | None:
        """What the model holds to be a hop's answer, given the hops (from 1) whose answers it was told.

        Nothing is found about somebody else: where an earlier answer is wrong, there is none.
        """
        if hop == WHOLE:
            return self._conclusion()
        answer = self.gold.hops[hop].answer
        if hop in self.found:
            return answer if says(self.found[hop], answer) else self.found[hop]
        needs = [need for need in self.gold.hops[hop].needs() if need not in named]
        if not all(self.holds(need - 1) for need in needs):
            return None
        return answer if self.shown(hop) else None

    def holds(self, hop: int) -> bool:
        """Whether the model has a hop's right answer."""
        value = self.value(hop)
        return value is not None and says(value, self.gold.hops[hop].answer)

    def _conclusion(self) -> str | None:
        """What the question's answer follows to be; of a chain the last hop's, otherwise it takes all hops."""
        gold = self.gold
        if WHOLE in self.found:
            return self.found[WHOLE]
        if not gold.hops:
            return None
        if gold.is_chain():
            return self.value(len(gold.hops) - 1)
        values = [self.value(hop) for hop in range(len(gold.hops))]
        if not gold.answer or None in values:
            return None
        wrong = not all(self.holds(hop) for hop in range(len(gold.hops)))
        return self.decoy(gold.answer) if wrong else gold.answer

    def missing(self) -> list[int]:
        """The hops without an answer, in order."""
        return [hop for hop in range(len(self.gold.hops)) if self.value(hop) is None]

    def answer_to(self, question: str) -> str | None:
        """What the model holds to be the answer to a question."""
        target = self.target(question)
        if target is None:
            return None
        return self.value(target, self.named(target, question) if target != WHOLE else ())

    # What is made up.

    def guess(self, question: str) -> str:
        """A wrong answer to a question."""
        target = self.target(question)
        return self.decoy(self.gold.answer if target in (None, WHOLE) else self.gold.hops[target].answer)

    def decoy(self, instead_of: str) -> str:
        """Something of the same kind that is not the answer, rather from what was shown."""
        if comparison_key(instead_of) in ("yes", "no"):
            return "no" if comparison_key(instead_of) == "yes" else "yes"
        number = any(sign.isdigit() for sign in instead_of)
        texts = " . ".join(source["text"] for source in self.sources)
        taken = comparison_key(f"{self.gold.question} {instead_of} {self.gold.answer}")
        known = [comparison_key(alias) for alias in (self.gold.answer, *self.gold.aliases) if alias]
        fit = [name for name in names(texts) if comparison_key(name) not in taken and name[0].isdigit() == number]
        apart = [name for name in fit if not any(says(name, alias) or says(alias, name) for alias in known)]
        return self.chance("decoy").choice(apart[:40] or (["1907", "64"] if number else ["Ada Reyes", "Port Ellery"]))


def _likeness(asked: frozenset[str], known: frozenset[str]) -> float:
    """Shared words: of both texts, and of the known one."""
    if not asked or not known:
        return 0.0
    both = len(asked & known)
    return (both / len(asked | known) + both / len(known)) / 2
