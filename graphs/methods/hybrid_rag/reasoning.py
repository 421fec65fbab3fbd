"""From references to a verdict in the hybrid system: the reasoner's reply and its outcome (sections 4.6, 4.7)."""

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
from sleuth.graphs.evidence import make_note, make_verdict, strip_marks, verdict_for
from sleuth.graphs.methods.hybrid_rag.references import Document
from sleuth.graphs.methods.hybrid_rag.settings import Settings
from sleuth.tools.errors import BadReply

UNKNOWN = re.compile(r"\bi\s+(?:do\s+not|don\W?t)\s+know\b", re.IGNORECASE)
NOTHING_ELSE = re.compile(rf"\W*(?:{UNKNOWN.pattern}|unknown)\W*", re.IGNORECASE)
INVALID = re.compile(r"\binvalid\s+question\b", re.IGNORECASE)

_SHOWN = 6000
"""Number of characters of an unparsable reply that are summarized."""


class QuotedReply(TypedDict):
    """A quote of a reference in the reasoner's reply; `source` counts from 1 and may be wrong."""

    source: int
    quote: str


class ReasonedReply(TypedDict):
    """The reasoner's answer, its judgement of the question's premise, and its quotes."""

    answer: str
    premise: str
    false_premise: bool
    quotes: list[QuotedReply]


async def reason(
    model: ModelCaller, asked: Asked, sources: tuple[Source, ...], settings: Settings
) -> tuple[ReasonedReply | None, str]:
    """Return the reasoner's answer, or its reply if that cannot be parsed, also after a repair.

    Without sources, outline and permission to refuse it is the plain baseline of a model alone.
    """
    given = ResolveInput(question=asked.question, asked_at=asked.asked_at, sources=sources)
    try:
        if settings.outline and settings.false_premise:
            doubted = await model.ask(RESOLVE, given)
            return _said(doubted, premise=doubted.premise, false_premise=doubted.false_premise), ""
        if settings.outline:
            reasoned = await model.ask(RESOLVE_BY_REASONING, given)
            return _said(reasoned), ""
        if sources or settings.refuse:
            resolved = await model.ask(RESOLVE_CAREFUL if settings.refuse else RESOLVE_PLAIN, given)
            return _said(resolved), ""
        alone = await model.ask(ANSWER_UNAIDED, QuestionInput(question=asked.question))
        return ReasonedReply(answer=alone.answer, premise="", false_premise=False, quotes=[]), ""
    except BadReply as error:
        model.warn(f"{error} It is summarized.")
        return None, error.reply or str(error)


def _said(reply: Resolved | Reasoned | Doubted, *, premise: str = "", false_premise: bool = False) -> ReasonedReply:
    quotes = [QuotedReply(source=each.source, quote=each.quote) for each in reply.citations]
    return ReasonedReply(answer=reply.answer, premise=premise, false_premise=false_premise, quotes=quotes)


async def summarise(model: ModelCaller, question: str, reply: str) -> ReasonedReply:
    """Extract the answer from a reply without form; it has no citations."""
    given = SummariseInput(question=question, sources=(Source(title="Thoughts", text=reply[:_SHOWN]),))
    found = await ask_or(model, SUMMARISE, given, Summary(answer=""), "The question stays open.")
    return ReasonedReply(answer=found.answer, premise="", false_premise=False, quotes=[])


@dataclass(frozen=True, kw_only=True, slots=True)
class AnswerOutcome:
    """Outcome of an answer; `text` is its shown part."""

    status: Status
    text: str
    quotes: tuple[Quote, ...] = ()

    @classmethod
    def of(cls, said: ReasonedReply, settings: Settings) -> "AnswerOutcome":
        """Return the outcome: "I don't know" anywhere means unknown, a false premise an invalid one (section 4.7)."""
        text = strip_marks(said["answer"])
        if settings.false_premise and (said["false_premise"] or INVALID.search(text)):
            return cls(status="invalid_question", text=" ".join(said["premise"].split()))
        if not text or NOTHING_ELSE.fullmatch(text) or (settings.refuse and UNKNOWN.search(text)):
            return cls(status="unknown", text="")
        quotes = (Quote.model_validate(each) for each in said["quotes"])
        return cls(status="answered", text=text, quotes=tuple(quotes))

    def verdict(
        self, model: ModelCaller, question: str, document: Document, notes: Sequence[Note]
    ) -> tuple[Verdict, dict[str, Note | None]]:
        """Return the verdict of the run, and its note."""
        if self.status != "answered":
            return make_verdict(self.status, self.text, []), {}
        citations = document.cite(model, self.text, self.quotes, notes) or document.support(self.text)
        found = make_note(question, self.text, citations)
        return verdict_for(model, self.text, [found]), {"answer": found}
