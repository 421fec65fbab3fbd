"""Notes, answers and verdicts: how a run ends and what it cites."""

import re
from collections.abc import Iterable, Sequence

from typing_extensions import TypedDict

from sleuth.agents.formatting import Step
from sleuth.agents.model import first_token_probability
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.role import I, Role
from sleuth.agents.roles.inputs import CitedTrajectoryInput, ReadInput, TrajectoryInput
from sleuth.agents.roles.reading import ANSWER, ANSWER_WITH_SOURCES, READ, Final, Reading
from sleuth.agents.roles.reasoning import REASON, Reasoned
from sleuth.graphs.core.answer import Citation, Note, Verdict, citation_place, make_verdict
from sleuth.graphs.core.state import Question, Update, beginning_of
from sleuth.graphs.evidence.citations import verified_citations
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.graphs.evidence.text_spans import strip_marks
from sleuth.tools.errors import BadReply
from sleuth.tools.text.normalization import comparison_key
from sleuth.tools.types import Passage


def make_note(question: str, finding: str, citations: list[Citation], remark: str = "") -> Note:
    """Return a finding as a note."""
    passages = list(dict.fromkeys(citation["passage"] for citation in citations))
    note = Note(question=question, finding=finding, passages=passages, citations=citations)
    return Note(**note, remark=remark) if remark else note


def as_steps(notes: Iterable[Note]) -> tuple[Step, ...]:
    """Return notes in the form that roles read."""
    return tuple(Step(question=note["question"], answer=note["finding"] or "not found") for note in notes)


async def answer_question(
    model: ModelCaller, question: str, notes: Sequence[Note], *, cited: Sequence[Passage] | None = None
) -> Verdict:
    """Answer the question from notes, and from their `cited` passages if given.

    The verdict is "unknown" if they do not suffice.
    """
    steps, nothing, loss = as_steps(notes), Final(known=False), "The question stays open."
    if cited is None:
        final = await model.ask_or(ANSWER, TrajectoryInput(question=question, trajectory=steps), nothing, loss)
    else:
        request = CitedTrajectoryInput(question=question, trajectory=steps, sources=as_sources(cited))
        final = await model.ask_or(ANSWER_WITH_SOURCES, request, nothing, loss)
    text = stated_answer(final.answer, question)
    return verdict_for(model, text, notes) if final.known and text else make_verdict("unknown", "", [])


def verdict_for(model: ModelCaller, text: str, notes: Iterable[Note]) -> Verdict:
    """Return the verdict of an answer with the citations of its notes, and warn if there are none."""
    verdict = make_verdict("answered", text, notes)
    if not verdict["citations"]:
        model.warn("no passage supports this answer word for word")
    return verdict


def verdict_of_sentences(model: ModelCaller, sentences: Sequence[Note], inherited: Iterable[Note]) -> Verdict:
    """Return the verdict of an answer of these sentences; each citation has the ends of those that it supports."""
    texts = [sentence["finding"] for sentence in sentences]
    verdict = verdict_for(model, " ".join(texts), [*inherited, *sentences])
    if len(texts) == 1:
        return verdict
    ends = [len(" ".join(texts[:number])) for number in range(1, len(texts) + 1)]
    return with_sentence_ends(verdict, sentences, ends)


def with_sentence_ends(verdict: Verdict, sentences: Sequence[Note], ends: Sequence[int]) -> Verdict:
    """Return a verdict whose citations have the ends of the sentences that they support, in characters of its text."""
    places = [[citation_place(citation) for citation in sentence.get("citations", [])] for sentence in sentences]

    def with_ends(citation: Citation) -> Citation:
        supported = [end for end, cited in zip(ends, places, strict=True) if citation_place(citation) in cited]
        return Citation(**citation, sentence_ends=supported) if supported else citation

    return verdict | {"citations": list(map(with_ends, verdict["citations"]))}


def finish(model: ModelCaller, state: Question, text: str, citations: list[Citation]) -> Update:
    """Return the update that ends a run with an answer; the verdict is "unknown" if the text is empty."""
    if not text:
        return {"notes": {}, "verdict": make_verdict("unknown", "", [])}
    note = make_note(state.question, text, citations)
    return {"notes": {"answer": note}, "verdict": verdict_for(model, text, [*state.notes.values(), note])}


async def read_answer(
    model: ModelCaller, question: str, passages: Sequence[Passage], loss: str, *, findings: Sequence[Step] = ()
) -> tuple[str, list[Citation]]:
    """Return the answer that a reader takes from passages, with its citations; empty if they do not contain it."""
    request = ReadInput(question=question, sources=as_sources(passages), known=tuple(findings))
    read = await model.ask_or(READ, request, Reading(answerable=False), loss)
    text = stated_answer(read.answer, question) if read.answerable else ""
    return text, verified_citations(model, text, read.citations, passages, question=question)


class Generation(TypedDict):
    """An answer, empty where there is none, with its reasons and citations."""

    answer: str
    reason: str
    citations: list[Citation]


async def generate(model: ModelCaller, state: Question, passages: Sequence[Passage], loss: str) -> Generation:
    """Generate an answer from passages and inherited notes; `loss` is warned of if the reply cannot be parsed."""
    request = ReadInput(question=state.question, sources=as_sources(passages), known=as_steps(state.notes.values()))
    reply = await model.ask_or(REASON, request, Reasoned(answer=""), loss)
    text = stated_answer(reply.answer, state.question)
    citations = verified_citations(model, text, reply.citations, passages, question=state.question)
    return Generation(answer=text, reason=reply.reason, citations=citations)


def stated_answer(answer: str, question: str = "") -> str:
    """Return an answer without marks; empty if it states that there is none, and a bare yes or no if that is asked."""
    text = strip_marks(answer)
    parts = re.split(r"[.!?;,。！？，]+\s*", _PREFACE.sub("", comparison_key(text).replace("’", "'")).strip("\"'“” "))
    if all(not part or _NO_ANSWER.fullmatch(part) for part in parts):
        return ""
    yes_or_no = _YES_OR_NO.match(text) if _ASKS_YES_OR_NO.match(beginning_of(question)) else None
    return yes_or_no[1].lower() if yes_or_no else text


_ASKS_YES_OR_NO = re.compile(
    r"\W*(?:[^?,]*,\s*)?(?:and |but |so )?(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall"
    r"|should|may|might|must)(?:n['’]t)?\s",
    re.IGNORECASE,
)
_YES_OR_NO = re.compile(r"\W*(yes|no)\b\W*?(?:\Z|[,;:!)–—]|\.(?!\s*\d)|\s[-(])", re.IGNORECASE)
_SOURCES = (
    r"(?:(?:the|these|this|any|my|given|provided|available|above|shown|of) )*"
    r"(?:sources?|passages?|documents?|texts?|context|information|articles?|materials?|steps|excerpts?)"
)
_NOT_GIVEN = (
    r"(?:not (?:explicitly |directly )?|un|(?:cannot|can't|could not) be )"
    r"(?:known|mentioned|stated|given|specified|found|provided|determined|available|answered|clear)"
)
_PREFACE = re.compile(
    r"(?<!\W)\W*(?:(?:(?:i'm|i am) )?(?:sorry|afraid)|unfortunately"
    rf"|(?:based on|according to|from) {_SOURCES})\W+(?:but |that )?"
)
_IN_THEM = rf" (?:in|from|by) {_SOURCES}.*"
_NOT = r"(?:do not|don't|does not|doesn't|cannot|can't|could not|couldn't)"
_KNOW = r"(?:know|say|tell|answer|determine|find)\b.*"
_STATE = (
    r"(?:mention|say|state|contain|provide|specify|give|include|tell|answer|reveal|indicate|have|show|name|list"
    r"|identify|explain|describe|address|discuss)\b.*"
)
_NO_ANSWER = re.compile(
    "|".join(
        (
            rf"(?:i|we) (?:honestly |really )?{_NOT} {_KNOW}",
            rf"(?:(?:i am|i'm|it is|it's) )?(?:unable|not able|not possible|impossible) to {_KNOW}",
            r"(?:(?:i am|i'm) )?not sure|(?:i have )?no idea|n/a|none|null|(?:there is )?no answer(?: found)?",
            r"(?:there is |there's )?(?:no|not enough|insufficient) (?:\w+ )?(?:information|data|details)\b.*",
            rf"{_SOURCES} {_NOT} {_STATE}",
            rf"(?:(?:(?:the |this )?(?:answer|information)|it|this)(?: is)? )?{_NOT_GIVEN}(?:{_IN_THEM})?",
            rf".{{0,80}} (?:(?:is|are|was|were) )?{_NOT_GIVEN}{_IN_THEM}",
            r"ich wei(?:ß|ss) (?:es )?nicht|(?:das ist )?(?:unbekannt|nicht bekannt)|je ne sais pas|inconnue?",
            r"no (?:lo )?sé|desconocid[oa]|non (?:lo )?so|não sei|не знаю|неизвестно|我?不知道|未知|不明",
        )
    )
)
"""A sentence or clause without an answer; an answer consists of nothing else if there is none."""


async def yes_probability(model: ModelCaller, role: Role[I, str], request: I, *, otherwise: float, loss: str) -> float:
    """Return P(yes) / (P(yes) + P(no)) at the first token of a reply, or `otherwise` if it cannot be parsed.

    If the server gives no log-probabilities the word itself counts as certain, with a warning.
    """
    try:
        word, reply = await model.ask_with_reply(role, request)
    except BadReply as error:
        model.warn(f"{error} {loss}")
        return otherwise
    if reply["logprobs"] is None:
        model.warn(f"{role.prompt}: no log-probabilities, so the reply is a plain yes or no")
        return float(comparison_key(word).startswith("yes"))
    probability, warning = first_token_probability(reply)
    if warning:
        model.warn(f"{role.prompt}: {warning}")
    return probability
