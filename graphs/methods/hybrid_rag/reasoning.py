"""From references to a verdict in the hybrid system: the reasoner's reply, and what it comes to (sections 4.6, 4.7)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from typing_extensions import TypedDict

from sleuth.agents.formatting import Quote, Source
from sleuth.agents.model_calls import ModelCaller
from sleuth.agents.roles.hybrid import (
    RESOLVE,
    RESOLVE_BY_REASONING,
    RESOLVE_CAREFUL,
    RESOLVE_PLAIN,
    SUMMARISE,
    Asked,
    Doubted,
    Reasoned,
    Resolved,
    ResolveInput,
    SummariseInput,
    Summary,
)
from sleuth.agents.roles.reading import ANSWER_UNAIDED
from sleuth.agents.roles.reasoning import QuestionInput
from sleuth.graphs.core import Note, Status, Verdict, ask_or
from sleuth.graphs.evidence import answered, clean, conclude, note
from sleuth.graphs.methods.hybrid_rag.references import Document
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.tools.errors import BadReply

UNKNOWN = re.compile(r"\bi\s+(?:do\s+not|don\W?t)\s+know\b", re.IGNORECASE)
NOTHING_ELSE = re.compile(rf"\W*(?:{UNKNOWN.pattern}|unknown)\W*", re.IGNORECASE)
INVALID = re.compile(r"\binvalid\s+question\b", re.IGNORECASE)

_SHOWN = 6000
"""Characters of a reply that cannot be read which are summarised."""


class Quoted(TypedDict):
    """What the reasoner says that a reference says; `source` counts from 1 and may be wrong."""

    source: int
    quote: str


class Said(TypedDict):
    """The reasoner's answer, what it thinks of the question's premise, and what it cites."""

    answer: str
    premise: str
    false_premise: bool
    quotes: list[Quoted]


async def reason(
    desk: ModelCaller, asked: Asked, sources: tuple[Source, ...], settings: Settings
) -> tuple[Said | None, str]:
    """The reasoner's answer, or its reply where that cannot be read, also after a repair.

    Without sources, outline and leave to refuse it is the plain baseline of a model alone.
    """
    given = ResolveInput(question=asked.question, asked_at=asked.asked_at, sources=sources)
    try:
        if settings.outline and settings.false_premise:
            doubted = await desk.ask(RESOLVE, given)
            return _said(doubted, premise=doubted.premise, false_premise=doubted.false_premise), ""
        if settings.outline:
            reasoned = await desk.ask(RESOLVE_BY_REASONING, given)
            return _said(reasoned), ""
        if sources or settings.refuse:
            resolved = await desk.ask(RESOLVE_CAREFUL if settings.refuse else RESOLVE_PLAIN, given)
            return _said(resolved), ""
        alone = await desk.ask(ANSWER_UNAIDED, QuestionInput(question=asked.question))
        return Said(answer=alone.answer, premise="", false_premise=False, quotes=[]), ""
    except BadReply as error:
        desk.warn(f"{error} What it says is summarised.")
        return None, error.reply or str(error)


def _said(reply: Resolved | Reasoned | Doubted, *, premise: str = "", false_premise: bool = False) -> Said:
    quotes = [Quoted(source=each.source, quote=each.quote) for each in reply.citations]
    return Said(answer=reply.answer, premise=premise, false_premise=false_premise, quotes=quotes)


async def summarise(desk: ModelCaller, question: str, reply: str) -> Said:
    """The answer out of a reply without form; nothing that it cites is known."""
    given = SummariseInput(question=question, sources=(Source(title="Thoughts", text=reply[:_SHOWN]),))
    found = await ask_or(desk, SUMMARISE, given, Summary(answer=""), "The question stays open.")
    return Said(answer=found.answer, premise="", false_premise=False, quotes=[])


@dataclass(frozen=True, kw_only=True, slots=True)
class Ending:
    """What an answer amounts to; `text` is what is shown of it."""

    status: Status
    text: str
    quotes: tuple[Quote, ...] = ()

    @classmethod
    def of(cls, said: Said, settings: Settings) -> "Ending":
        """ "I don't know" anywhere in it makes it exactly that, a false premise an invalid question (section 4.7)."""
        text = clean(said["answer"])
        if settings.false_premise and (said["false_premise"] or INVALID.search(text)):
            return cls(status="invalid_question", text=" ".join(said["premise"].split()))
        if not text or NOTHING_ELSE.fullmatch(text) or (settings.refuse and UNKNOWN.search(text)):
            return cls(status="unknown", text="")
        quotes = (Quote.model_validate(each) for each in said["quotes"])
        return cls(status="answered", text=text, quotes=tuple(quotes))

    def verdict(
        self, desk: ModelCaller, question: str, document: Document, notes: Sequence[Note]
    ) -> tuple[Verdict, dict[str, Note | None]]:
        """The end of the run, and the note that it leaves."""
        if self.status != "answered":
            return conclude(self.status, self.text, []), {}
        citations = document.cite(desk, self.text, self.quotes, notes) or document.support(self.text)
        found = note(question, self.text, citations)
        return answered(desk, self.text, [found]), {"answer": found}
