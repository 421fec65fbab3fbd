"""Gold annotations of an evaluation question: its hops, their answers and their evidence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal

from sleuth.graphs.methods.hybrid_rag.question_attributes import FAST
from sleuth.tools.errors import UsageError
from sleuth.tools.text.normalization import comparison_key, single_line
from sleuth.tools.text.tokenization import sentences
from training.simulation.wording import (
    REFERENCE,
    ask_relation,
    content_words,
    describe,
    fill_references,
    find_names,
    find_references,
    mentions,
    split_relation,
)

Origin = Literal["given", "triples", "derived"]
Passages = Mapping[str, tuple[str, str]]
"""Title and text by id."""

WHOLE: Final = -1
"""The whole question, in place of a hop's number (from 0)."""

_BRACKET = re.compile(r"\s*\([^()]*\)$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Hop:
    """One sub-question. `#n` in `question` and `subject` is the answer of hop n, counted from 1.

    `evidence` is the sentence or line of the passage with the answer, or the whole text if none contains its words.
    An empty `answer` means that the documents do not contain it; there is no evidence then.
    """

    question: str
    answer: str
    passage: str
    title: str = ""
    text: str = ""
    subject: str = ""
    predicate: str = ""
    evidence: str = ""

    def needs(self) -> list[int]:
        """Return the hops that this one builds on, counted from 1."""
        return find_references(self.question)


@dataclass(frozen=True, kw_only=True)
class Gold:
    """A question with its answer and its hops; `answer` is empty if the documents lack it or contradict the premise.

    `origin` is the source of the hops: given with the question, made from its evidence triples, or derived, one per
    gold passage. `domain` and `dynamic` are the attributes of questions of the CRAG benchmark.
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
        """Return whether the last hop's answer is the question's; otherwise the answer follows from all hops."""
        if not self.hops or self.contradicted():
            return False
        own = {comparison_key(answer) for answer in (self.answer, *self.aliases)}
        return not self.answer or comparison_key(self.hops[-1].answer) in own

    def contradicted(self) -> bool:
        """Return whether the premise is false: each hop has an answer, and the question has none."""
        return not self.answer and all(hop.answer for hop in self.hops)

    def asked(self, hop: int) -> str:
        """Return a hop's question (from 0) with the right names in it."""
        answers = {at: each.answer for at, each in enumerate(self.hops, start=1)}
        return fill_references(self.hops[hop].question, answers)

    def nested(self, hop: int) -> str:
        """Return a hop's question (from 0) with descriptions in place of names."""
        values = {need: describe(self.nested(need - 1)) for need in self.hops[hop].needs()}
        return fill_references(self.hops[hop].question, values)

    @cached_property
    def wordings(self) -> dict[int, tuple[frozenset[str], ...]]:
        """The words of each hop's question with names, with descriptions, with neither; last the question (WHOLE)."""
        ways: dict[int, tuple[frozenset[str], ...]] = {}
        for at, hop in enumerate(self.hops):
            neither = REFERENCE.sub("", hop.question)
            ways[at] = tuple(content_words(way) for way in (self.asked(at), self.nested(at), neither))
        return {**ways, WHOLE: (content_words(self.question),)}

    def statement(self, hop: int) -> str:
        """Return a hop's (from 0) question and answer as one line."""
        return f"{self.asked(hop).rstrip('?')}: {self.hops[hop].answer}."


def gold_of(row: Mapping[str, Any], passages: Passages) -> Gold:
    """Return the gold annotations in a line of a questions file and its gold passages.

    Args:
        row: the fixed fields of questions files; HotpotQA's `supporting_facts` are not needed.
        passages: the row's gold passages, title and text by id; for a document its whole text.

    Raises:
        UsageError: a gold passage is missing.
    """
    wanted = [*(step["gold_id"] for step in row.get("decomposition") or ()), *(row.get("gold_ids") or ())]
    if missing := [id for id in wanted if id not in passages]:
        raise UsageError(f"Question {row.get('id')} cannot be simulated: passage {missing[0]} is missing.")
    own = {id: passages[id] for id in row.get("gold_ids") or ()}
    origin: Origin
    if steps := row.get("decomposition"):
        origin, drafts = "given", list(_from_steps(steps, row.get("evidence_triples") or ()))
    elif triples := row.get("evidence_triples"):
        origin, drafts = "triples", list(_from_triples(triples, own))
    else:
        origin, drafts = "derived", _from_passages(row, own)
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


def _from_steps(steps: Sequence[Mapping[str, str]], triples: Sequence[Sequence[str]]) -> Iterator[Hop]:
    """Yield the hops of MuSiQue; its "subject >> relation" becomes a question."""
    relations = {comparison_key(object): (predicate, object) for _, predicate, object in triples}
    for step in steps:
        relation = split_relation(step["question"])
        predicate = relations.get(comparison_key(step["answer"]), ("", ""))[0]
        yield Hop(
            question=ask_relation(*relation) if relation else step["question"],
            answer=step["answer"],
            passage=step["gold_id"],
            subject=relation[0] if relation else "",
            predicate=relation[1] if relation else predicate,
        )


def _from_triples(triples: Sequence[Sequence[str]], passages: Passages) -> Iterator[Hop]:
    """Yield the hops of 2Wiki: a triple whose subject is an earlier one's object builds on it."""
    objects: dict[str, int] = {}
    for at, (subject, relation, object) in enumerate(triples, start=1):
        known = objects.get(_bare(subject))
        name = f"#{known}" if known else subject
        yield Hop(
            question=ask_relation(name, relation),
            answer=object,
            passage=_about(subject, object, passages),
            subject=name,
            predicate=relation,
        )
        objects.setdefault(_bare(object), at)


def _about(subject: str, object: str, passages: Passages) -> str:
    """Return the passage about a subject, otherwise one with the object's words."""
    by_title = [id for id, (title, _) in passages.items() if _bare(title) == _bare(subject)]
    both = [
        id for id, (title, text) in passages.items() if mentions(f"{title} {text}", subject) and mentions(text, object)
    ]
    return next(iter([*by_title, *both, *passages]), "")


def _bare(name: str) -> str:
    return comparison_key(_BRACKET.sub("", name))


def _from_passages(row: Mapping[str, Any], passages: Passages) -> list[Hop]:
    """Return the hops of HotpotQA: one per passage, in an order in which one leads to the next if there is one.

    A passage leads to the next if it names the next one's subject; its hop asks for that. Otherwise the hop's answer is
    the passage's first sentence.
    """
    question, answer = row["question"].replace("#", "No. "), row.get("answer") or ""  # "#1" is no reference here
    asked = content_words(question)
    order = {id: (mentions(" ".join(own), answer), -len(asked & content_words(own[0]))) for id, own in passages.items()}
    ids = sorted(passages, key=lambda id: order[id])
    last = ids[-1] if ids and mentions(" ".join(passages[ids[-1]]), answer) else ""
    drafts: list[Hop] = []
    for at, id in enumerate(ids):
        bridge = _BRACKET.sub("", passages[ids[at + 1]][0]) if at + 1 < len(ids) else ""
        leads = bool(bridge) and mentions(passages[id][1], bridge) and not mentions(question, bridge)
        led = bool(drafts) and drafts[-1].predicate == "leads to"
        bare = _BRACKET.sub("", passages[id][0])
        subject = f"#{at}" if led else bare if mentions(question, bare) else single_line(question).rstrip("?")
        if leads:
            drafts.append(Hop(question=_toward(subject, question), answer=bridge, passage=id, predicate="leads to"))
        elif id == last and (led or len(ids) == 1):
            drafts.append(Hop(question=_toward(subject, question), answer=answer, passage=id, subject=subject))
        else:
            first = next(iter(sentences(passages[id][1])), "")[:160]
            drafts.append(Hop(question=f"What is said about {subject}?", answer=first, passage=id, subject=subject))
    return drafts


def _toward(subject: str, question: str) -> str:
    return question if comparison_key(subject) in comparison_key(question) else f"{subject}: {question}"


def _hops(drafts: Sequence[Hop], passages: Passages) -> tuple[Hop, ...]:
    """Return the hops with the titles, texts and evidence of their passages, and with a subject and a predicate."""
    answers = {at: draft.answer for at, draft in enumerate(drafts, start=1)}
    hops = []
    for draft in drafts:
        title, text = passages[draft.passage]
        asked, refers = draft.question, draft.needs()
        subject = f"#{refers[0]}" if refers else next(iter(find_names(asked)[-1:]), title)
        words = " ".join(sorted(content_words(asked), key=asked.casefold().find))[:80].strip()
        hop = replace(
            draft,
            title=title,
            text=text,
            subject=draft.subject or subject,
            predicate=draft.predicate or words or "is",
            evidence=_evidence(fill_references(asked, answers), draft.answer, text),
        )
        hops.append(hop)
    return tuple(hops)


def _evidence(asked: str, answer: str, text: str) -> str:
    """Return the sentence with the answer that is most similar to the question."""
    if not answer:
        return ""
    matching = [unit for unit in sentences(text) if mentions(unit, answer)]
    return max(matching, key=lambda unit: len(content_words(unit) & content_words(asked)), default=single_line(text))


# Questions that come with pages

_PLAIN = frozenset({"yes", "no"})
"""Answers that no page contains literally."""

_ENOUGH = 0.5
"""The share of an answer's words that its sentence must contain."""


def gold_on_pages(row: Mapping[str, Any], pages: Passages) -> Gold:
    """Return a question as one hop; its evidence is the sentence or table row with most of the answer.

    Such questions have no gold passage. Words of the question do not count, unless the answer has no others. If nothing
    contains half of them there is no hop, and a simulated model finds no answer in the pages. A false premise is one
    that a page contradicts.

    Args:
        row: as for `gold_of`; `type` is the benchmark's.
        pages: title and text of each page, tables among it, by id.
    """
    bare = gold_of({**row, "gold_ids": [], "decomposition": []}, {})
    asked = content_words(bare.question)
    wanted = content_words(bare.answer) - asked - _PLAIN or asked
    best, page, evidence = max(
        ((_share(unit, wanted, asked), id, unit) for id, (_, text) in pages.items() for unit in sentences(text)),
        default=((0.0, 0), "", ""),
        key=lambda found: found[0],
    )
    if best[0] < _ENOUGH:
        return bare
    title, text = pages[page]
    hop = Hop(
        question=bare.question,
        answer=bare.answer,
        passage=page,
        title=title,
        text=text,
        subject=next(iter(find_names(bare.question)[-1:]), title),
        predicate="is",
        evidence=evidence,
    )
    answer = "" if bare.type == "false_premise" else bare.answer
    return replace(bare, answer=answer, hops=(hop,), origin="derived")


def _share(unit: str, wanted: frozenset[str], asked: frozenset[str]) -> tuple[float, int]:
    """Return the share of the answer's words in a sentence, then the number of the question's words."""
    has = content_words(unit)
    return len(has & wanted) / len(wanted) if wanted else 0.0, len(has & asked)
