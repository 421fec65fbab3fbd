"""Check of an answer by the evidence checker: accept it, answer once more, or refuse. No paper has it.

    answer -> check_evidence -> end

The checker (`sleuth.tools.evidence_checker`) reads the cited passages with the question. If they do not support the
answer, it is replaced by the checker's own answer from all found passages (`check_spans`; the verdict has both).
Otherwise the model answers once more from the most relevant passages, with the rejected answer in its prompt. If that
answer is not supported either, the run ends as unknown, with the nearest answer. An answer that is accepted with less
than GOOD_SUPPORT, or that replaces another one, is marked as weak.

By default, answers are checked if there is a checker, and a threshold of support has been fitted for the model.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, Literal

from langgraph.graph import END, StateGraph
from langgraph.runtime import get_runtime

from sleuth.agents.formatting import Step
from sleuth.agents.roles.reading import READ
from sleuth.graphs.core.answer import Citation, Note, Support, Threshold, Verdict, make_verdict
from sleuth.graphs.core.context import CheckedSettings, Context
from sleuth.graphs.core.node import Call, node
from sleuth.graphs.core.passages import deserialize_passage
from sleuth.graphs.core.state import RunState, Update, find_hashes, same_question
from sleuth.graphs.core.thresholds import choose_threshold
from sleuth.graphs.evidence.citations import cite_sentence
from sleuth.graphs.evidence.outcomes import as_steps, make_note, read_answer
from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from sleuth.tools.evidence_checker.checker import Reading
from sleuth.tools.storage.archive import Archive
from sleuth.tools.text.tokenization import name_key
from sleuth.tools.types import Passage

SPAN_WORDS = 12
"""Answers up to this length are compared with what the checker reads; longer ones are checked as statements."""
SECOND_ATTEMPT_PASSAGES = 5
"""Passages for the second attempt."""
GOOD_SUPPORT = 0.6
"""5 % of the answers to unanswerable questions reach this support (`benchmarks.false_answers`)."""
UNFITTED = Threshold(value=0.2, by="not fitted for this model")


def least_support(context: Context) -> float | None:
    """Return the minimum support of an answer; None if answers are not checked."""
    settings, fitted = context.settings, context.thresholds.get(READ.prompt)
    if not isinstance(settings, CheckedSettings):
        return None
    by_default = fitted is not None and context.checker is not None
    if not (by_default if settings.check_evidence is None else settings.check_evidence):
        return None
    return choose_threshold(settings.min_support, fitted, UNFITTED)["value"]


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


async def assess(checker: EvidenceChecker, question: str, answer: str, passages: Sequence[Passage]) -> Support:
    """Return how well passages support an answer to a question."""
    evidence = as_evidence(passages)
    reading = await asyncio.to_thread(checker.read, question, evidence)
    score = reading.support_of(answer)
    if len(answer.split()) > SPAN_WORDS:
        score = (await asyncio.to_thread(checker.check, answer, evidence)).supported
    return make_support(score, reading)


def make_support(score: float, reading: Reading) -> Support:
    """Return the support of an answer in a reading, marked if it is weak."""
    support = Support(score=round(score, 4), answerable=round(reading.answerable, 4))
    return Support(**support, weak=True) if score < GOOD_SUPPORT else support


@node
async def check_evidence(state: RunState, call: Call[CheckedSettings]) -> Update:
    """Accept the answer if the cited passages support it; otherwise answer once more, or refuse."""
    checker, verdict, least = require_checker(call.context.checker), state.verdict, least_support(call.context)
    assert verdict is not None
    assert least is not None
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    found = await found_passages(values, call.context.archive)
    support = await assess(checker, state.question, verdict["text"], cited_passages(verdict["citations"], found))
    if support["score"] >= least:
        return {"verdict": Verdict(**{**verdict, "support": support})}
    doubt = f"the cited passages do not support the answer {verdict['text']!r} (support {support['score']:.2f})"
    reading = await asyncio.to_thread(checker.read, state.question, as_evidence(found))
    second = _answer_of_checker(state, call, least, reading, found)
    if second is None and call.affords():
        second = await _answer_again(state, call, checker, least, _most_relevant(reading, found))
    if second is not None:
        return {**second, "warnings": [doubt]}
    own = reading.support_of(reading.answer)
    nearest = reading.answer if own > support["score"] else verdict["text"]
    open_ones = [note["question"] for note in state.notes.values() if not note["finding"]] or [state.question]
    return {"notes": _rejected(state), "verdict": unsupported(support, nearest, open_ones), "warnings": [doubt]}


def _answer_of_checker(
    state: RunState, call: Call[CheckedSettings], least: float, reading: Reading, found: Sequence[Passage]
) -> Update | None:
    """Return the answer of the checker's reading, if it is supported; None otherwise."""
    text, wanted = reading.answer, call.settings.check_spans
    score = reading.support_of(text)
    if wanted is None:
        wanted = READ.prompt in call.context.thresholds
    if not (wanted and found and score >= least):
        return None
    if reading.spans and text == reading.spans[0].text:
        citations = [cite_sentence(found[reading.spans[0].passage], reading.spans[0].start)]
    else:  # yes or no, mostly of a comparison
        citations = [cite_sentence(passage, 0) for passage in _most_relevant(reading, found)[:2]]
    return _corrected(state, text, citations, make_support(score, reading), "read by the checker")


async def _answer_again(
    state: RunState, call: Call[CheckedSettings], checker: EvidenceChecker, least: float, shown: Sequence[Passage]
) -> Update | None:
    """Return a supported answer of the model from these passages; None if there is none."""
    assert state.verdict is not None
    rejected = state.verdict["text"]
    reason = Step(question=f"Do the sources support the answer “{rejected}”?", answer="no")
    kept = [note for note in state.notes.values() if not same_question(note["question"], state.question)]
    known, loss = (*as_steps(kept), reason), "The answer is refused."
    text, citations = await read_answer(call.model, state.question, shown, loss, known=known)
    if not text:
        return None
    support = await assess(checker, state.question, text, cited_passages(citations, shown))
    if support["score"] < least:
        return None
    return _corrected(state, text, citations, support, "answered once more")


def _corrected(state: RunState, text: str, citations: list[Citation], support: Support, remark: str) -> Update:
    assert state.verdict is not None
    note = make_note(state.question, text, citations, remark)
    if name_key(text) != name_key(first := state.verdict["text"]):  # two readings disagree
        support = Support(score=support["score"], answerable=support["answerable"], weak=True, replaced=first)
    verdict = Verdict(**{**make_verdict("answered", text, [note]), "support": support})
    return {"notes": {**_rejected(state), "checked": note}, "verdict": verdict}


def _most_relevant(reading: Reading, found: Sequence[Passage]) -> list[Passage]:
    return [found[at] for at in reading.by_relevance[:SECOND_ATTEMPT_PASSAGES]]


def _rejected(state: RunState) -> dict[str, Note | None]:
    """Return an update without the notes that answer the question itself: a fork would inherit them."""
    return {key: None for key, note in state.notes.items() if same_question(note["question"], state.question)}


def unsupported(support: Support, nearest: str, missing: Iterable[str] = ()) -> Verdict:
    """Return the verdict of an answer that the passages do not support."""
    lines = [f"The passages found do not support an answer. Nearest, but not supported: {nearest}"]
    if missing := list(dict.fromkeys(missing)):
        lines += ["What is missing:", *(f"- {question}" for question in missing)]
    support = Support(score=support["score"], answerable=support["answerable"], nearest=nearest)
    return Verdict(status="unknown", text="\n".join(lines), citations=[], support=support)


async def support_of_run(checker: EvidenceChecker, values: Mapping[str, Any], archive: Archive) -> Support | None:
    """Return how well the cited passages support a finished run's answer; None without an answer.

    Args:
        checker: the evidence checker.
        values: the run's state.
        archive: the archive of the run's passages.
    """
    verdict = values["verdict"]
    if verdict["status"] != "answered":
        return None
    passages = cited_passages(verdict["citations"], await found_passages(values, archive))
    return await assess(checker, values["question"], verdict["text"], passages)


async def found_passages(values: Mapping[str, Any], archive: Archive) -> list[Passage]:
    """Return all passages that a run has found, sorted by id."""
    found = find_hashes({name: value for name, value in values.items() if name != "calls"})
    passages: dict[str, Passage] = {}
    for record in await archive.load(sorted(found)):
        with suppress(AttributeError, TypeError, ValueError):  # an archived text of another kind
            passage = deserialize_passage(record)
            passages[passage.id] = passage
    return [passages[id] for id in sorted(passages)]


def cited_passages(citations: Iterable[Citation], found: Iterable[Passage]) -> list[Passage]:
    """Return the passages of citations, each once; a quote from outside the documents is a passage of its own."""
    known = {passage.id: passage for passage in found}
    cited: dict[str, Passage] = {}
    for each in citations:
        quote = Passage(
            id=each["passage"] or each["quote"],
            document_id=each["document"],
            title=each["title"],
            text=each["quote"],
            start=each["start"],
            end=each["end"],
        )
        cited.setdefault(quote.id, known.get(quote.id, quote))
    return list(cited.values())


# Wiring


def check_or_end(state: RunState) -> Literal["check_evidence", "__end__"]:
    """Route to the check of an answer, if the run checks it.

    A fork that sets the verdict itself has no runtime: its answer is not checked.
    """
    runtime = get_runtime(Context)
    is_checked = runtime and least_support(runtime.context) is not None
    return "check_evidence" if is_checked and state.verdict and state.verdict["status"] == "answered" else "__end__"


def choices(graph: StateGraph[Any, Context, Any, Any], name: str) -> list[str]:
    """Return the nodes to which routers may lead from a node."""
    branches = graph.branches.get(name, {}).values()
    return list(dict.fromkeys(end for branch in branches for end in (branch.ends or {}).values()))


def add_evidence_check(graph: StateGraph[Any, Context, Any, Any]) -> StateGraph[Any, Context, Any, Any]:
    """Add the node `check_evidence` behind every node that may end the run, and return the graph."""
    routed = [name for name in graph.branches if END in choices(graph, name)]
    linked = [name for name, after in graph.edges if after == END]
    graph.edges -= {(name, END) for name in linked}
    graph.add_node("check_evidence", check_evidence, input_schema=graph.state_schema)
    graph.add_edge("check_evidence", END)
    for name in (*routed, *linked):
        graph.add_conditional_edges(name, check_or_end)
    return graph
