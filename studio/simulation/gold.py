"""What is known about an evaluation question beforehand: its hops, their answers, and where these stand."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

from sleuth.studio.simulation.wording import (
    REFERENCE,
    about,
    clause,
    content,
    described,
    filled,
    names,
    references,
    related,
    says,
)
from sleuth.tools.errors import UsageError
from sleuth.tools.sources.question_attributes import FAST
from sleuth.tools.text import comparison_key, sentences, single_line

Origin = Literal["given", "triples", "derived"]
Passages = Mapping[str, tuple[str, str]]
"""Title and text by id."""

WHOLE: Final = -1
"""The question itself, in the place of a hop's number (from 0)."""

_BRACKET = re.compile(r"\s*\([^()]*\)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Hop:
    """One sub-question. `#n` in `question` and `subject` stands for the answer of hop n, counted from 1.

    `evidence` is the sentence or line of the passage that tells the answer; the whole text where none has its words.
    Without an `answer` the documents do not tell, and there is no evidence.
    """

    question: str
    answer: str
    passage: str
    title: str
    text: str
    subject: str
    predicate: str
    evidence: str

    def needs(self) -> list[int]:
        """The hops that this one builds on, counted from 1."""
        return references(self.question)


@dataclass(frozen=True, kw_only=True)
class Gold:
    """A question with its answer and its hops; `answer` is empty where the documents do not tell, or contradict.

    `origin` says where the hops are from: given with the question, made from its evidence triples, or derived, one
    for each gold passage. `domain` and `dynamic` are the attributes that questions of the CRAG benchmark have.
    """

    id: str
    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    type: str = ""
    hops: tuple[Hop, ...] = ()
    origin: Origin = "given"
    domain: str = ""
    dynamic: bool = False

    def is_chain(self) -> bool:
        """Whether the last hop's answer is the question's; otherwise something follows from all hops together."""
        if not self.hops or self.contradicted():
            return False
        own = {comparison_key(answer) for answer in (self.answer, *self.aliases)}
        return not self.answer or comparison_key(self.hops[-1].answer) in own

    def contradicted(self) -> bool:
        """A question without an answer although each hop has one: its premise is false."""
        return not self.answer and all(hop.answer for hop in self.hops)

    def right(self, value: str) -> bool:
        """Whether a value is the question's answer."""
        return bool(value) and any(_same(value, known) for known in (self.answer, *self.aliases))

    def asked(self, hop: int) -> str:
        """A hop's question (from 0) with the right names in it."""
        answers = {at: each.answer for at, each in enumerate(self.hops, start=1)}
        return filled(self.hops[hop].question, answers)

    def nested(self, hop: int) -> str:
        """A hop's question (from 0) with descriptions in the place of names."""
        values = {need: described(self.nested(need - 1)) for need in self.hops[hop].needs()}
        return filled(self.hops[hop].question, values)

    @cached_property
    def ways(self) -> dict[int, tuple[frozenset[str], ...]]:
        """The words of each hop's question, with names, with descriptions, and bare; last the question (WHOLE)."""
        ways: dict[int, tuple[frozenset[str], ...]] = {}
        for at, hop in enumerate(self.hops):
            neither = REFERENCE.sub("", hop.question)
            ways[at] = tuple(content(way) for way in (self.asked(at), self.nested(at), neither))
        return {**ways, WHOLE: (content(self.question),)}

    def statement(self, hop: int) -> str:
        """What a hop (from 0) tells, as a line of its own."""
        return f"{self.asked(hop).rstrip('?')}: {self.hops[hop].answer}."

    def sentence(self, hop: int) -> str:
        """The same in the passage's own words, with its title where they do not say whom they are about."""
        known = self.hops[hop]
        subject = filled(known.subject, {at: each.answer for at, each in enumerate(self.hops, start=1)})
        words_of_it = clause(known.evidence, known.answer, most=180)
        if not says(words_of_it, known.answer) and self.origin == "triples":
            return f"The {known.predicate} of {subject} is {known.answer}."
        named = says(words_of_it, subject) or says(words_of_it, known.title)
        return words_of_it if named else f"{known.title}: {words_of_it}"


def _same(value: str, known: str) -> bool:
    return comparison_key(value).strip(" .") == comparison_key(known).strip(" .") or says(value, known)


def gold_of(row: Mapping[str, Any], passages: Passages) -> Gold:
    """What a line of a questions file and its gold passages tell.

    Args:
        row: the fixed fields of questions files; HotpotQA's `supporting_facts` are not needed.
        passages: the row's gold passages, title and text by id; of a document its whole text.

    Raises:
        UsageError: a gold passage is missing.
    """
    if missing := [id for id in _wanted(row) if id not in passages]:
        raise UsageError(f"Question {row.get('id')} cannot be simulated: its passage {missing[0]} is not there.")
    origin, drafts = _drafts(row, passages)
    return Gold(
        id=str(row.get("id") or row["question"]),
        question=row["question"],
        answer=row.get("answer") or "",
        aliases=tuple(row.get("answer_aliases") or ()),
        type=row.get("type") or "",
        hops=_hops(drafts, passages),
        origin=origin,
        domain=row.get("domain") or "",
        dynamic=row.get("static_or_dynamic") in FAST,
    )


def _wanted(row: Mapping[str, Any]) -> list[str]:
    steps = [hop["gold_id"] for hop in row.get("decomposition") or ()]
    return list(dict.fromkeys([*steps, *(row.get("gold_ids") or ())]))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Draft:
    """A hop before its evidence is known."""

    question: str
    answer: str
    passage: str
    subject: str = ""
    predicate: str = ""


def _drafts(row: Mapping[str, Any], passages: Passages) -> tuple[Origin, list[_Draft]]:
    if steps := row.get("decomposition"):
        return "given", list(_from_steps(steps, row.get("evidence_triples") or ()))
    ids: list[str] = row.get("gold_ids") or []
    if triples := row.get("evidence_triples"):
        return "triples", list(_from_triples(triples, {id: passages[id] for id in ids}))
    return "derived", _from_passages(row, {id: passages[id] for id in ids})


def _from_steps(steps: Sequence[Mapping[str, str]], triples: Sequence[Sequence[str]]) -> Iterator[_Draft]:
    """MuSiQue's way; its "subject >> relation" becomes a question."""
    told = {comparison_key(object): (predicate, object) for _, predicate, object in triples}
    for step in steps:
        relation = related(step["question"])
        predicate = told.get(comparison_key(step["answer"]), ("", ""))[0]
        yield _Draft(
            question=about(*relation) if relation else step["question"],
            answer=step["answer"],
            passage=step["gold_id"],
            subject=relation[0] if relation else "",
            predicate=relation[1] if relation else predicate,
        )


def _from_triples(triples: Sequence[Sequence[str]], passages: Passages) -> Iterator[_Draft]:
    """2Wiki's way: a triple whose subject is an earlier one's object builds on it."""
    objects: dict[str, int] = {}
    for at, (subject, relation, object) in enumerate(triples, start=1):
        known = objects.get(_bare(subject))
        name = f"#{known}" if known else subject
        yield _Draft(
            question=about(name, relation),
            answer=object,
            passage=_about(subject, object, passages),
            subject=name,
            predicate=relation,
        )
        objects.setdefault(_bare(object), at)


def _about(subject: str, object: str, passages: Passages) -> str:
    """The passage on a subject, else one that has the object's words."""
    by_title = [id for id, (title, _) in passages.items() if _bare(title) == _bare(subject)]
    both = [id for id, (title, text) in passages.items() if says(f"{title} {text}", subject) and says(text, object)]
    return next(iter([*by_title, *both, *passages]), "")


def _bare(name: str) -> str:
    return comparison_key(_BRACKET.sub("", name))


def _from_passages(row: Mapping[str, Any], passages: Passages) -> list[_Draft]:
    """HotpotQA's way: a hop for each passage, in an order in which one leads to the next, where there is one.

    A passage leads on if it names the next one's subject; its hop asks for that. Otherwise a passage's hop asks what it
    says, and its first sentence is the answer.
    """
    question, answer = row["question"], row.get("answer") or ""
    ids = sorted(passages, key=lambda id: (says(" ".join(passages[id]), answer), -_overlap(question, passages[id])))
    last = ids[-1] if ids and says(" ".join(passages[ids[-1]]), answer) else ""
    drafts: list[_Draft] = []
    for at, id in enumerate(ids):
        bridge = _BRACKET.sub("", passages[ids[at + 1]][0]) if at + 1 < len(ids) else ""
        leads = bool(bridge) and says(passages[id][1], bridge) and not says(question, bridge)
        led = bool(drafts) and drafts[-1].predicate == "leads to"
        subject = f"#{at}" if led else _entry(question, passages[id][0])
        if leads:
            drafts.append(_Draft(question=_toward(subject, question), answer=bridge, passage=id, predicate="leads to"))
        elif id == last and (led or len(ids) == 1):
            drafts.append(_Draft(question=_toward(subject, question), answer=answer, passage=id, subject=subject))
        else:
            told = next(iter(sentences(passages[id][1])), "")[:160]
            drafts.append(_Draft(question=f"What is said about {subject}?", answer=told, passage=id, subject=subject))
    return drafts


def _overlap(question: str, passage: tuple[str, str]) -> int:
    return len(content(question) & content(passage[0]))


def _entry(question: str, title: str) -> str:
    """A passage's subject where the question names it; otherwise nothing better is known than the question."""
    bare = _BRACKET.sub("", title)
    return bare if says(question, bare) else single_line(question).rstrip("?")


def _toward(subject: str, question: str) -> str:
    return question if comparison_key(subject) in comparison_key(question) else f"{subject}: {question}"


def _hops(drafts: Sequence[_Draft], passages: Passages) -> tuple[Hop, ...]:
    answers = {at: draft.answer for at, draft in enumerate(drafts, start=1)}
    return tuple(
        Hop(
            question=draft.question,
            answer=draft.answer,
            passage=draft.passage,
            title=passages[draft.passage][0],
            text=passages[draft.passage][1],
            subject=draft.subject or _subject(draft.question, passages[draft.passage][0]),
            predicate=draft.predicate or _predicate(draft.question),
            evidence=_evidence(filled(draft.question, answers), draft.answer, passages[draft.passage][1]),
        )
        for draft in drafts
    )


def _subject(question: str, title: str) -> str:
    refers = references(question)
    return f"#{refers[0]}" if refers else next(iter(names(question)[-1:]), title)


def _predicate(question: str) -> str:
    return " ".join(sorted(content(filled(question, {})), key=question.casefold().find))[:80].strip() or "is"


def _evidence(asked: str, answer: str, text: str) -> str:
    """Of the sentences that have the answer the one most like the question."""
    if not answer:
        return ""
    telling = [unit for unit in sentences(text) if says(unit, answer)]
    return max(telling, key=lambda unit: len(content(unit) & content(asked)), default=single_line(text))
