"""One request as the simulated model sees it: the sources, the hops that they answer, and the role's errors.

A hop's answer is available only if a source contains its evidence, an earlier step found it, or one sentence contains
both its subject and its answer. The subject of a question must be named in it, or be available in the same way.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from random import Random
from typing import Any

from sleuth.agents.formatting import Quote
from sleuth.agents.model import Request
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.text.tokenization import sentences
from training.simulation.gold import WHOLE, Gold
from training.simulation.parameters import CLOSED_BOOK, Simulation
from training.simulation.wording import content_words, excerpt, find_names, mentions, rephrase

_ENOUGH = 0.45
"""The likeness from which a text counts as a hop's question."""

_NOTHING = frozenset({"", "not found", "unknown", "none"})


@dataclass(frozen=True, kw_only=True)
class RequestView:
    """A request, the gold of its run, and the simulation's parameters."""

    gold: Gold
    simulation: Simulation
    request: Request

    @property
    def given(self) -> dict[str, Any]:
        """The role's input."""
        return self.request.input

    @property
    def question(self) -> str:
        """The question of the role's input: its step, question or query."""
        return str(next(self.given[name] for name in ("step", "question", "query") if name in self.given))

    @property
    def sources(self) -> list[Mapping[str, str]]:
        """The passages of the input; the first is source 1."""
        return list(self.given.get("sources", ()))

    @cached_property
    def steps(self) -> list[tuple[str, str]]:
        """Questions answered before, with their answers."""
        before = [each for name in ("known", "trajectory", "answers") for each in self.given.get(name, ())]
        asked = [(each["question"], each["answer"]) for each in before if "question" in each]
        return asked + [(each["text"], each["finding"]) for each in self.given.get("queries", ())]

    # Randomness depends on the request and its place, never on the order of calls.

    @cached_property
    def _mark(self) -> str:
        place = self.request.sampling.seed if self.request.sampling.temperature > 0 else 0
        asked = json.dumps(self.given, sort_keys=True, ensure_ascii=False, default=str)
        identity = f"{self.simulation.seed}\n{self.gold.id}\n{self.request.prompt}\n{place}\n{asked}"
        return sha256(identity.encode("utf-8", "replace")).hexdigest()

    def rng(self, label: str) -> Random:
        """Return the random generator of this request for a label."""
        return Random(f"{self._mark}{label}")  # noqa: S311 - a simulation, repeatable by design

    def errs(self, kind: str, about: object = "") -> bool:
        """Return whether the role makes this error here."""
        rate = self.simulation.rate(self.request.role, kind)
        return rate > 0 and self.rng(f"{kind}{about}").random() < rate

    def knows_unaided(self) -> bool:
        """Return whether the model has memorized the question's answer: the same for the whole run."""
        rng = Random(f"{self.simulation.seed}\n{self.gold.id}\n{CLOSED_BOOK}")  # noqa: S311 - as above
        return bool(self.gold.answer) and rng.random() < self.simulation.rate("", CLOSED_BOOK)

    # The hop that a question asks for.

    def target(self, question: str) -> int | None:
        """Return the hop (from 0) that a text asks for, or WHOLE; None where it is neither."""
        if comparison_key(question) == comparison_key(self.gold.question):
            return WHOLE
        asked = content_words(question)
        likeness = {at: max(_likeness(asked, way) for way in ways) for at, ways in self.gold.wordings.items()}
        best = max(likeness, key=lambda at: likeness[at])
        return best if likeness[best] >= _ENOUGH else None

    def named(self, hop: int, question: str) -> set[int]:
        """Return the hops (from 1) whose right answers a question names."""
        return {need for need in self.gold.hops[hop].needs() if mentions(question, self.gold.hops[need - 1].answer)}

    # Wording, which `training` replaces by that which a model should learn.

    def statement(self, hop: int) -> str:
        """Return a sentence with a hop's (from 0) answer."""
        return self.gold.statement(hop)

    def excerpt(self, unit: str, answer: str) -> str:
        """Return the part of a sentence that a citation quotes."""
        return excerpt(unit, answer)

    def rephrase(self, question: str, way: int) -> str:
        """Return the question in other words; way 0 does not change it."""
        return rephrase(question, way)

    def thought(self, hop: int) -> str:
        """Return why a plan has a step for a hop (from 0)."""
        return "It builds on what was found." if hop else "This has to be known."

    # Answers.

    @cached_property
    def found(self) -> dict[int, str]:
        """Answers to hops in earlier steps, right or wrong."""
        found: dict[int, str] = {}
        for question, answer in self.steps:
            target = self.target(question)
            if target is not None and comparison_key(answer) not in _NOTHING:
                found[target] = answer
        return found

    def shown(self, hop: int) -> Quote | None:
        """Return the words of the sources with a hop's answer; None also if the role overlooks them."""
        return None if self.errs("missed", hop) else self._shown.get(hop)

    @cached_property
    def _shown(self) -> dict[int, Quote]:
        shown: dict[int, Quote] = {}
        for at, source in enumerate(self.sources, start=1):
            for hop in range(len(self.gold.hops)):
                quote = None if hop in shown else self.quote(hop, source.get("title", ""), source["text"])
                if quote:
                    shown[hop] = Quote(source=at, quote=quote)
        return shown

    def quote(self, hop: int, title: str, text: str) -> str | None:
        """Return the words of a text that contain a hop's answer as evidence."""
        known = self.gold.hops[hop]
        if not known.answer:
            return None
        read = comparison_key(text)
        if comparison_key(known.evidence) in read:
            return self.excerpt(known.evidence, known.answer)
        if not mentions(read, known.answer):
            return None
        if (
            comparison_key(self.statement(hop)) in read
            or f"p> {comparison_key(known.predicate)} | o> {comparison_key(known.answer)}" in read
        ):
            return self.excerpt(text, known.answer)
        return self._sentence(hop, title, text)

    def _sentence(self, hop: int, title: str, text: str) -> str | None:
        """Return a sentence with the answer that, with its title, has the subject and most words of the question."""
        asked, answer = self.gold.asked(hop), self.gold.hops[hop].answer
        subject = frozenset().union(*(content_words(name) for name in find_names(asked))) - content_words(answer)
        wanted = content_words(asked)
        for unit in sentences(text):
            has = content_words(f"{title} {unit}")
            if subject and subject <= has and mentions(unit, answer) and len(wanted & has) >= 0.7 * len(wanted):
                return self.excerpt(unit, answer)
        return None

    def value(self, hop: int, named: Iterable[int] = ()) -> str | None:
        """Return the model's answer to a hop; None if an earlier answer that it needs is missing or wrong.

        Args:
            hop: from 0, or WHOLE.
            named: the hops (from 1) whose answers the question names.
        """
        if hop == WHOLE:
            return self._conclusion()
        answer = self.gold.hops[hop].answer
        if hop in self.found:
            return answer if mentions(self.found[hop], answer) else self.found[hop]
        needs = [need for need in self.gold.hops[hop].needs() if need not in named]
        if not all(self.holds(need - 1) for need in needs):
            return None
        return answer if self.shown(hop) else None

    def holds(self, hop: int) -> bool:
        """Return whether the model has a hop's right answer."""
        value = self.value(hop)
        return value is not None and mentions(value, self.gold.hops[hop].answer)

    def _conclusion(self) -> str | None:
        """Return the answer to the question: of a chain the last hop's; otherwise all hops are needed."""
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
        """Return the hops without an answer, in order."""
        return [hop for hop in range(len(self.gold.hops)) if self.value(hop) is None]

    def answer_to(self, question: str) -> str | None:
        """Return the model's answer to a question."""
        target = self.target(question)
        if target is None:
            return None
        return self.value(target, self.named(target, question) if target != WHOLE else ())

    # Wrong answers.

    def guess(self, question: str) -> str:
        """Return a wrong answer to a question."""
        target = self.target(question)
        return self.decoy(self.gold.answer if target in (None, WHOLE) else self.gold.hops[target].answer)

    def decoy(self, instead_of: str) -> str:
        """Return something of the same kind that is not the answer, from the sources if possible."""
        if comparison_key(instead_of) in ("yes", "no"):
            return "no" if comparison_key(instead_of) == "yes" else "yes"
        number = any(sign.isdigit() for sign in instead_of)
        texts = " . ".join(source["text"] for source in self.sources)
        taken = comparison_key(f"{self.gold.question} {instead_of} {self.gold.answer}")
        known = [comparison_key(alias) for alias in (self.gold.answer, *self.gold.aliases) if alias]
        fit = [name for name in find_names(texts) if comparison_key(name) not in taken and name[0].isdigit() == number]
        apart = [name for name in fit if not any(mentions(name, alias) or mentions(alias, name) for alias in known)]
        return self.rng("decoy").choice(apart[:40] or (["1907", "64"] if number else ["Ada Reyes", "Port Ellery"]))


def _likeness(asked: frozenset[str], known: frozenset[str]) -> float:
    """Return the mean share of common words, of both texts and of the known one."""
    if not asked or not known:
        return 0.0
    both = len(asked & known)
    return (both / len(asked | known) + both / len(known)) / 2
