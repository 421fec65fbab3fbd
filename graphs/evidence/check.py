"""Check of an answer by the evidence checker: its support, and a refusal of what has too little. No paper has it.

    answer -> check_evidence -> end

The checker (`sleuth.tools.evidence_checker`) reads the user's question with the passages of the run. An answer with
less than GOOD_SUPPORT is weakly supported, and so is one if the checker gives more to another that it reads in all
passages. The answer is never replaced: the other one is shown with it (`also`). An answer with less than `min_support`
is refused. A comparison of two dates is checked by reading the date of each: the checker does not compare them.

If citations are required, the model is asked once more for those of an answer without any. If it gives none either, the
answer is weakly supported by what the checker reads, or refused.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Literal

from langgraph.graph import END, StateGraph
from langgraph.runtime import get_runtime
from typing_extensions import TypedDict

from sleuth.agents.roles.reading import CITE, READ, Cited, CiteInput
from sleuth.graphs.core.answer import Citation, Finding, Note, Support, Threshold, Verdict, evidence_in, refusal_text
from sleuth.graphs.core.context import CheckedSettings, CitedSettings, Context
from sleuth.graphs.core.node import Call, node
from sleuth.graphs.core.passages import deserialize_passage
from sleuth.graphs.core.state import RunState, Update, find_hashes, same_question
from sleuth.graphs.core.thresholds import choose_threshold
from sleuth.graphs.evidence.citations import cite_reading, verified_citations
from sleuth.graphs.evidence.comparison import Comparison, read_comparison, read_date
from sleuth.graphs.evidence.retrieval import as_sources
from sleuth.graphs.evidence.text_spans import content_words, find_sentence
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.evidence_checker.checker import Reading, is_same_answer
from sleuth.tools.storage.archive import Archive
from sleuth.tools.text.language import may_be_english
from sleuth.tools.text.normalization import single_line
from sleuth.tools.text.tokenization import name_key, sentence_spans
from sleuth.tools.types import Passage

SPAN_WORDS = 12
"""Answers up to this length are compared with what the checker reads; of longer ones each sentence is checked."""
GOOD_SUPPORT = 0.8
"""The least probability of an answer that is shown as supported."""
MIN_SUPPORT = 0.2
"""The least probability of an answer that the checker itself reads and that is used."""
CHANCE = 0.6
"""The most support of an answer that the checker hardly reads better than chance: yes or no, and one of two that the
question names (60 % right of 100 held-back yes-or-no questions, `training.evidence_checker.check`)."""
_ALTERNATIVES = re.compile(r"\bor\b.*\?", re.IGNORECASE)
_UNFITTED = Threshold(value=0.0, by="not fitted for this model")


class ReadAnswer(TypedDict):
    """An answer that the checker has read, with its citations and its support."""

    text: str
    citations: list[Citation]
    support: Support


def is_answer_checked(context: Context, question: str) -> bool:
    """Return whether the answer to a question is checked: by default in English, which the checker reads, if there is a
    checker.
    """
    setting = context.settings.check_evidence if isinstance(context.settings, CheckedSettings) else False
    return context.checker is not None and may_be_english(question) if setting is None else setting


def lacks_citation(context: Context, verdict: Verdict) -> bool:
    """Return whether an answer has no citation where one is required."""
    setting = context.settings.require_citations if isinstance(context.settings, CitedSettings) else False
    is_required = context.require_citations if setting is None else setting
    return is_required and not evidence_in(verdict["citations"])


def least_support(settings: CitedSettings, context: Context) -> float:
    """Return the least support of an answer: the given one, else the one fitted for the model, else 0."""
    chosen = settings.min_support if isinstance(settings, CheckedSettings) else None
    return choose_threshold(chosen, context.thresholds.get(READ.prompt), _UNFITTED)["value"]


def require_checker(checker: EvidenceChecker | None) -> EvidenceChecker:
    """Return the checker; raise UsageError if there is none."""
    if checker is None:
        raise UsageError(
            "This needs an evidence checker: set SLEUTH_CHECKER to the folder of one, or in Python the `checker` of "
            "the Context."
        )
    return checker


def as_evidence(passages: Iterable[Passage]) -> list[Evidence]:
    """Return passages in the form that the evidence checker reads."""
    return [Evidence(title=passage.title, text=passage.text) for passage in passages]


async def assess(
    checker: EvidenceChecker, question: str, answer: str, citations: Sequence[Citation], passages: Sequence[Passage]
) -> Support:
    """Return how well the passages of a run support an answer to a question.

    Of two readings, of the cited passages and of all, the one with more support counts: a quote may lack the passage
    that links it to the question. It is weak, too, if the checker gives more to another answer that it reads in all
    passages: this one is `also`. Each sentence of a long answer is checked with the cited passages.

    Args:
        checker: the evidence checker.
        question: the question that was asked.
        answer: its answer.
        citations: those of the answer.
        passages: all passages of the run.
    """
    cited = cited_passages(citations, passages)
    every = list({passage.id: passage for passage in (*passages, *cited)}.values())
    compared = read_comparison(question)
    if compared and (read := await asyncio.to_thread(compare_dates, checker, compared, [every, every])):
        if is_same_answer(answer, read["text"]):
            return read["support"]
        also = Finding(text=read["text"], citations=read["citations"][-1:])
        return Support(score=0.0, answerable=read["support"]["answerable"], weak=True, also=also)
    reading = await asyncio.to_thread(checker.read, question, as_evidence(cited))
    if len(answer.split()) > SPAN_WORDS:
        requests = [(answer[start:end], as_evidence(cited)) for start, end in sentence_spans(answer)]
        checks = await asyncio.to_thread(checker.check_batch, requests)
        return make_support(min(check.supported for check in checks), reading)
    support = make_support(support_of(question, answer, reading), reading)
    if every != cited:
        reading = await asyncio.to_thread(checker.read, question, as_evidence(every))
        whole = make_support(support_of(question, answer, reading), reading)
        support = max(support, whole, key=lambda support: support["score"])
    other = reading.answer
    if is_same_answer(answer, other) or support_of(question, other, reading) < max(support["score"], MIN_SUPPORT):
        return support
    also = Finding(text=other, citations=cite_reading(question, reading, every)[-1:])
    return support | {"weak": True, "also": also}


def compare_dates(
    checker: EvidenceChecker, compared: Comparison, by_question: Sequence[Sequence[Passage]]
) -> ReadAnswer | None:
    """Return the answer to a comparison of two dates; None if the passages do not decide it.

    Args:
        checker: the evidence checker.
        compared: the comparison.
        by_question: the passages to read for the date of each name.
    """
    answers = [
        read_answer(question, checker.read(question, as_evidence(passages)), passages)
        for question, passages in zip(compared.questions, by_question, strict=True)
    ]
    name = compared.choose([read_date(answer["text"]) for answer in answers])
    if name is None:
        return None
    weakest = min((answer["support"] for answer in answers), key=lambda support: support["score"])
    citations = [citation for answer in answers for citation in answer["citations"]]
    return ReadAnswer(text=name, citations=citations, support=weakest)


def read_answer(question: str, reading: Reading, passages: Sequence[Passage]) -> ReadAnswer:
    """Return the answer of a reading, with its citations and its support."""
    support = make_support(support_of(question, reading.answer, reading), reading)
    return ReadAnswer(text=reading.answer, citations=cite_reading(question, reading, passages), support=support)


def support_of(question: str, answer: str, reading: Reading) -> float:
    """Return the support of an answer in a reading; at most CHANCE for yes or no, or if the question names answers."""
    score = reading.support_of(answer)
    is_choice = name_key(answer) in ("yes", "no") or _ALTERNATIVES.search(question)
    return min(score, CHANCE) if is_choice else score


def make_support(score: float, reading: Reading) -> Support:
    """Return the support of an answer in a reading, marked if it is weak."""
    support = Support(score=round(score, 4), answerable=round(reading.answerable, 4))
    return Support(**support, weak=True) if score < GOOD_SUPPORT else support


@node
async def check_evidence(state: RunState, call: Call[CitedSettings]) -> Update:
    """Ask for a citation that is required, and add the support of the answer, or refuse it if that is too little."""
    verdict, context = state.verdict, call.context
    assert verdict is not None
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    passages = await passages_of_run(values, context.archive)
    least = least_support(call.settings, context)
    if lacks_citation(context, verdict):
        verdict = await _cite(verdict, state.question, passages, call)
    is_uncited = lacks_citation(context, verdict)
    support = None
    if is_answer_checked(context, state.question):
        checker = require_checker(context.checker)
        support = await assess(checker, state.question, verdict["text"], verdict["citations"], passages)
        if is_uncited:
            least, support["weak"] = max(least, MIN_SUPPORT), True
        if support["score"] >= least:
            return {"verdict": verdict | {"support": support}}
    elif not is_uncited:
        return {"verdict": verdict}
    nearest = support["also"]["citations"] if support and "also" in support else verdict["citations"]
    missing = open_questions(state.question, state.notes.values())
    # A fork would inherit the notes that answer the question itself.
    rejected = {key: None for key, note in state.notes.items() if same_question(note["question"], state.question)}
    return {"notes": rejected, "verdict": refuse(support, nearest, missing)}


async def _cite(verdict: Verdict, question: str, passages: Sequence[Passage], call: Call[CitedSettings]) -> Verdict:
    """Return a verdict with the citations that the model gives for its text, if there are passages to cite."""
    if not passages:
        return verdict
    if not call.affords():
        call.model.warn("The budget has no room to ask for a citation.")
        return verdict
    text = verdict["text"]
    words = content_words(f"{question} {text}")
    shared = {passage.id: len(words & content_words(f"{passage.title} {passage.text}")) for passage in passages}
    ranked = sorted(passages, key=lambda passage: (not find_sentence(text, passage.text), -shared[passage.id]))
    request = CiteInput(question=question, answer=text, sources=as_sources(ranked))
    reply = await call.model.ask_or(CITE, request, Cited(), "The answer has no citation.")
    citations = verified_citations(call.model, text, reply.citations, ranked, question=question)
    return verdict | {"citations": [*verdict["citations"], *citations]}


def open_questions(asked: str, notes: Iterable[Note]) -> list[str]:
    """Return the questions of notes for which nothing was found, other than the one that was asked."""
    notes = list(notes)
    answered = [asked, *(note["question"] for note in notes if note["finding"])]
    without = dict.fromkeys(note["question"] for note in notes if not note["finding"])
    return [question for question in without if not any(same_question(question, other) for other in answered)]


def refuse(support: Support | None, citations: Sequence[Citation], missing: Sequence[str] = ()) -> Verdict:
    """Return the verdict of an answer that has too little support, with its last quote and the open questions."""
    quote = single_line(citations[-1]["quote"]) if citations else ""
    # A row of a table and single words cannot be read by themselves.
    is_sentence = len(quote.split()) > 3 and "|" not in quote
    nearest = f" The nearest sentence: “{quote}” ({citations[-1]['title']})." if is_sentence else ""
    verdict = Verdict(status="unknown", text=refusal_text("unknown", missing, remark=nearest), citations=[])
    if support:
        verdict["support"] = Support(score=support["score"], answerable=support["answerable"])
    return verdict


async def support_of_run(checker: EvidenceChecker, values: Mapping[str, Any], archive: Archive) -> Support | None:
    """Return how well the cited passages support a finished run's answer, by its own check if it had one; None without
    an answer.

    Args:
        checker: the evidence checker.
        values: the run's state.
        archive: the archive of the run's passages.
    """
    verdict: Verdict = values["verdict"]
    if verdict["status"] != "answered":
        return None
    if "support" in verdict:
        return verdict["support"]
    passages = await passages_of_run(values, archive)
    return await assess(checker, values["question"], verdict["text"], verdict["citations"], passages)


async def passages_of_run(values: Mapping[str, Any], archive: Archive) -> list[Passage]:
    """Return all passages that a run has found, sorted by id."""
    references = find_hashes({name: value for name, value in values.items() if name != "calls"})
    passages: dict[str, Passage] = {}
    for record in (await archive.find(sorted(references))).values():
        with suppress(AttributeError, TypeError, ValueError):  # an archived text of another kind
            passage = deserialize_passage(record)
            passages[passage.id] = passage
    return [passages[id] for id in sorted(passages)]


def cited_passages(citations: Iterable[Citation], passages: Iterable[Passage]) -> list[Passage]:
    """Return the passages of citations, each once; a quote from outside the documents is a passage of its own."""
    by_id = {passage.id: passage for passage in passages}
    cited: dict[str, Passage] = {}
    for citation in citations:
        quote = Passage(
            id=citation["passage"] or citation["quote"],
            document_id=citation["document"],
            title=citation["title"],
            text=citation["quote"],
            start=citation["start"],
            end=citation["end"],
        )
        cited.setdefault(quote.id, by_id.get(quote.id, quote))
    return list(cited.values())


# Wiring


def check_or_end(state: RunState) -> Literal["check_evidence", "__end__"]:
    """Route to the check of an answer, if the run checks it or it lacks a citation.

    A fork that sets the verdict itself has no runtime: its answer is not checked.
    """
    runtime, verdict = get_runtime(Context), state.verdict
    if not (runtime and verdict and verdict["status"] == "answered"):
        return "__end__"
    is_checked = is_answer_checked(runtime.context, state.question) or lacks_citation(runtime.context, verdict)
    return "check_evidence" if is_checked else "__end__"


def add_evidence_check(graph: StateGraph[Any, Context, Any, Any], *last: str) -> None:
    """Lead an answer of these nodes, which may end the run, to `check_evidence` if it is to be checked, else to END."""
    graph.add_node("check_evidence", check_evidence, input_schema=graph.state_schema)
    graph.add_edge("check_evidence", END)
    for name in last:
        graph.add_conditional_edges(name, check_or_end)
