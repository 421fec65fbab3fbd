"""From findings to a verdict in the hybrid system: the reference document, the reasoner's reply to it, and its outcome.

The references are numbered and of limited length. A citation counts only if it can be verified: a quote is in a shown
passage or table, an expression was evaluated, a result of a call contains the quote, a model's recollection contains
the answer. Sections 4.6 and 4.7.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from typing_extensions import TypedDict

from sleuth.agents.formatting import LABELS, LabeledSource, Quote, ReferenceKind, Source
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.role import Output, Role
from sleuth.agents.roles.hybrid import (
    RESOLVE,
    RESOLVE_BY_REASONING,
    RESOLVE_CAREFUL,
    RESOLVE_PLAIN,
    SUMMARISE,
    Asked,
    ResolveInput,
    Summary,
)
from sleuth.agents.roles.inputs import QuestionInput, SourcesInput
from sleuth.agents.roles.reading import ANSWER_UNAIDED
from sleuth.graphs.core.answer import Citation, Note, Status
from sleuth.graphs.core.passages import deserialize_passage, serialize_passage
from sleuth.graphs.evidence.citations import citation_at, find_support, verify_quotes
from sleuth.graphs.evidence.outcomes import stated_answer
from sleuth.graphs.evidence.text_spans import find_quote
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.tools.errors import BadReply
from sleuth.tools.storage.archive import Archive
from sleuth.tools.types import Passage
from sleuth.tools.web_pages.page import PageText
from sleuth.tools.web_pages.reading import cell_name
from sleuth.tools.web_pages.retriever import is_page_table


class Finding(TypedDict):
    """A result of a source other than a search: an expression and its value, a call and its result."""

    title: str
    text: str


class Reference(TypedDict):
    """A numbered reference: its text, or its passage as JSON, is in the archive under `held`.

    Its first `length` characters are read.
    """

    kind: ReferenceKind
    title: str
    held: str
    length: int


class ReasonedReply(TypedDict):
    """The reasoner's answer, its judgement of the question's premise, and its quotes of references (`Quote`)."""

    answer: str
    premise: str
    false_premise: bool
    quotes: list[dict[str, Any]]


ROOMY: tuple[ReferenceKind, ...] = ("text", "table")
"""Kinds that come last, best first, and are cut first."""

_TABLE_LINE = re.compile(r"\s*\|.*\|\s*")
_LEAST = 40
"""Characters; a shorter beginning of a reference is useless."""

_UNKNOWN = re.compile(r"\bi\s+(?:do\s+not|don\W?t)\s+know\b", re.IGNORECASE)
_NOTHING_ELSE = re.compile(rf"\W*(?:{_UNKNOWN.pattern}|unknown)\W*", re.IGNORECASE)
_INVALID = re.compile(r"\binvalid\s+question\b", re.IGNORECASE)
SAMPLED = 0.7
"""The temperature of each of several answers; the paper does not state one."""
_SUMMARISED = 6000
"""Number of characters of an unparsable reply that are summarized."""


def is_table(passage: Passage) -> bool:
    """Return whether a passage is of a page's table, or consists of rows of a table in Markdown."""
    lines = passage.text.strip().split("\n")
    return is_page_table(passage) or all(_TABLE_LINE.fullmatch(line) for line in lines)


async def collect(
    archive: Archive,
    findings: Mapping[ReferenceKind, Sequence[Finding]],
    passages: Mapping[ReferenceKind, Sequence[Passage]],
    limits: Mapping[ReferenceKind, int],
    total: int,
) -> tuple[list[Reference], list[str]]:
    """Collect the reference document: all kinds in their order, none longer than its limit, at most `total` characters.

    Returns:
        The references, and a line for each kind that was cut.
    """
    pieces = [(kind, each["title"], each["text"], each["text"]) for kind, those in findings.items() for each in those]
    pieces += [
        (kind, each.title, each.text, serialize_passage(each)) for kind, those in passages.items() for each in those
    ]
    collected: list[tuple[ReferenceKind, str, str, int]] = []
    room, lost = dict(limits), dict.fromkeys((kind for kind, *_ in pieces), 0)
    for kind, title, text, held in pieces:
        length = _fitting(text, min(room.get(kind, total), total), by_line=kind == "table")
        total -= length
        if kind in room:
            room[kind] -= length
        lost[kind] += len(text) - length
        if length:
            collected.append((kind, title, held, length))
    names = await archive.keep([held for _, _, held, _ in collected])
    references = [
        Reference(kind=kind, title=title, held=name, length=length)
        for (kind, title, _, length), name in zip(collected, names, strict=True)
    ]
    return references, [
        f"the references of kind {LABELS[kind]!r} were cut: {count:,} characters are not shown"
        for kind, count in lost.items()
        if count
    ]


def _fitting(text: str, room: int, *, by_line: bool) -> int:
    """Return the length that fits the room; of a table whole rows, at least one below its header."""
    if len(text) <= room:
        return len(text)
    if by_line:
        rows = text[: room + 1].rpartition("\n")[0]
        return len(rows) if rows.count("\n") >= 2 else 0
    return room if room >= _LEAST else 0


@dataclass(frozen=True)
class Document:
    """The loaded references, each with its shown part, for the roles to read and to verify their citations."""

    parts: Sequence[tuple[Reference, Passage]]
    pages: Sequence[PageText]

    @classmethod
    async def load(cls, archive: Archive, references: Sequence[Reference], pages: Sequence[PageText]) -> "Document":
        """Load the references of a run."""
        held = await archive.load([each["held"] for each in references])
        return cls([(each, _as_passage(each, text)) for each, text in zip(references, held, strict=True)], pages)

    @property
    def sources(self) -> tuple[LabeledSource, ...]:
        """Return the shown part of all references in order."""
        return tuple(
            LabeledSource(kind=each["kind"], title=each["title"], text=passage.text) for each, passage in self.parts
        )

    def cite(self, model: ModelCaller, reply: ReasonedReply, answer: str, notes: Iterable[Note]) -> list[Citation]:
        """Return the citations that can be verified, and warn of each other quote."""
        citations: list[Citation] = []
        roomy = [passage if each["kind"] in ROOMY else replace(passage, text="") for each, passage in self.parts]
        for quote in map(Quote.model_validate, reply["quotes"]):
            if any(each["kind"] not in ROOMY for each, _ in self.parts[quote.source - 1 : quote.source]):
                citations += self._cite_finding(model, answer, quote, notes)
            else:
                citations += [self._with_kind(each, answer) for each in verify_quotes(model, answer, [quote], roomy)]
        return [each for at, each in enumerate(citations) if each not in citations[:at]]

    def support(self, answer: str) -> list[Citation]:
        """Cite the first shown sentence, of text or table, that contains an answer."""
        passages = [passage for each, passage in self.parts if each["kind"] in ROOMY]
        return [self._with_kind(each, answer) for each in find_support(answer, passages)]

    def _cite_finding(self, model: ModelCaller, answer: str, quote: Quote, notes: Iterable[Note]) -> list[Citation]:
        reference, passage = self.parts[quote.source - 1]
        if reference["kind"] == "note":
            return [each for note in notes if note["finding"] == passage.text for each in note.get("citations", [])]
        span: tuple[int, int] | None = (0, len(passage.text))
        if reference["kind"] != "expression":
            span = find_quote(quote.quote, passage.text) or find_quote(answer, passage.text)
        if not span:
            label = LABELS[reference["kind"]]
            model.warn(f"dropped a citation of source {quote.source} ({label}): it does not contain the quote")
            return []
        return [{**citation_at(passage, span), "kind": reference["kind"], "reference": reference["title"]}]

    def _with_kind(self, citation: Citation, answer: str) -> Citation:
        reference, passage = next(part for part in self.parts if part[1].id == citation["passage"])
        if reference["kind"] != "table":
            return {**citation, "kind": "text"}
        in_row = find_quote(answer, citation["quote"])  # a quote may be a whole row
        place = citation["start"] + (in_row[0] if in_row else 0)
        return {**citation, "kind": "table", "reference": self._cell(passage, place)}

    def _cell(self, passage: Passage, place: int) -> str:
        """Return row and column of a cell, if known; a table of the collection may be cut into passages."""
        tables = {f"{page.id}#table-{at}": each for page in self.pages for at, each in enumerate(page.tables, start=1)}
        if table := tables.get(passage.document_id):
            return cell_name(table.markdown, place)
        return cell_name(passage.text, place) if passage.start == 0 else "a row of the table"


def _as_passage(reference: Reference, held: str) -> Passage:
    """Return the shown part of a reference; one without a passage has neither an id nor a document."""
    if reference["kind"] in ROOMY:
        whole = deserialize_passage(held)
        text = whole.text[: reference["length"]]
        return replace(whole, text=text, end=whole.start + len(text))
    text = held[: reference["length"]]
    return Passage(id="", document_id="", title=reference["title"], text=text, start=0, end=len(text))


async def reason(
    model: ModelCaller, asked: Asked, sources: tuple[Source, ...], settings: Settings, *, samples: int = 1
) -> tuple[ReasonedReply | None, str]:
    """Return the reasoner's answer, or its reply if that cannot be parsed, also after a repair.

    Without sources, outline and permission to refuse it is the plain baseline of a model alone. Of several `samples`
    the most frequent answer counts, the first one among equals; samples that cannot be parsed do not.
    """
    request = ResolveInput(question=asked.question, asked_at=asked.asked_at, sources=sources)
    if samples > 1:
        replies = await asyncio.gather(*(_reason_once(model, request, settings, freely=True) for _ in range(samples)))
        read = [reply for reply, _ in replies if reply]
        votes = Counter(outcome(reply, settings) for reply in read)
        chosen = max(read, key=lambda reply: votes[outcome(reply, settings)], default=None)
        return (chosen, "") if chosen else replies[0]
    return await _reason_once(model, request, settings)


async def _reason_once(
    model: ModelCaller, request: ResolveInput, settings: Settings, *, freely: bool = False
) -> tuple[ReasonedReply | None, str]:
    """Return one reply, sampled `freely` if several are compared."""
    asked: Any = request
    role: Role[Any, Any] = RESOLVE_CAREFUL if settings.refuse else RESOLVE_PLAIN
    if settings.outline:
        role = RESOLVE if settings.false_premise else RESOLVE_BY_REASONING
    elif not (request.sources or settings.refuse):
        role, asked = ANSWER_UNAIDED, QuestionInput(question=request.question)
    if freely:
        role = replace(role, sampling=replace(role.sampling, temperature=SAMPLED))
    try:
        return _reasoned(await model.ask(role, asked)), ""
    except BadReply as error:
        model.warn(f"{error} {'The vote continues without this sample.' if freely else 'It is summarized.'}")
        return None, error.reply or str(error)


async def summarise(model: ModelCaller, question: str, reply: str) -> ReasonedReply:
    """Extract the answer from a reply without form; it has no citations."""
    request = SourcesInput(question=question, sources=(Source(title="Thoughts", text=reply[:_SUMMARISED]),))
    summary = await model.ask_or(SUMMARISE, request, Summary(answer=""), "The question stays open.")
    return _reasoned(summary)


def _reasoned(reply: Output) -> ReasonedReply:
    """Return the reply of any of the reasoner's roles; fields that its form lacks are empty."""
    fields = {"premise": "", "false_premise": False, "citations": [], **reply.model_dump()}
    return ReasonedReply(
        answer=fields["answer"],
        premise=fields["premise"],
        false_premise=fields["false_premise"],
        quotes=fields["citations"],
    )


def outcome(reply: ReasonedReply, settings: Settings) -> tuple[Status, str]:
    """Return status and text: "I don't know" anywhere means unknown, a false premise an invalid question (4.7)."""
    text = stated_answer(reply["answer"])
    if settings.false_premise and (reply["false_premise"] or _INVALID.search(text)):
        return "invalid_question", " ".join(reply["premise"].split())
    if not text or _NOTHING_ELSE.fullmatch(text) or (settings.refuse and _UNKNOWN.search(text)):
        return "unknown", ""
    return "answered", text
