"""Evaluation questions that a model writes from the documents of a collection, each checked by a second pass.

A question that one passage answers is written from one sentence of it, which is what a small model can do; if its reply
cannot be used and the sentence defines the title, from a template. Search must find the passage by the question.

The second pass is a call that knows nothing of the first: it answers the question from the gold passages, as a method
does. A question is kept if the answers agree. One in two steps must not be answered by either passage alone, and one
without an answer not by the passages that search finds for it.
"""

import asyncio
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha1
from typing import Any

from langgraph.graph import START, StateGraph

from sleuth.agents.formatting import Source
from sleuth.agents.model import Model
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.inputs import ReadInput
from sleuth.agents.roles.questions import (
    WRITE_MULTI,
    WRITE_SINGLE,
    WRITE_UNANSWERABLE,
    LinkedPassagesInput,
    PassageInput,
)
from sleuth.agents.roles.reading import READ
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.private_graph import PrivateGraph
from sleuth.studio.evaluation.question_maker.file import Candidate, Kind, Made, WrittenQuestions
from sleuth.studio.evaluation.scoring import contained, f1, normalise
from sleuth.tools.collection import Collection
from sleuth.tools.errors import BadReply, ContextTooLong, UsageError
from sleuth.tools.search import Query
from sleuth.tools.storage import MemoryArchive
from sleuth.tools.text import kept_names, sentences
from sleuth.tools.types import Passage

AGREES = 0.6
"""F1 from which two answers count as the same."""
LEAST_CHARACTERS = 120
"""Shorter passages seldom contain a question."""
MOST_CALLS = 8
"""Model calls for one question: writing, up to three checks, and a repair of each."""
ATTEMPTS = 10
"""Candidates of a kind that are tried for each question; if none of them gives one, the kind is given up."""
FOUND_AMONG = 5
"""Passages of a search by the question, among which its own must be."""
SENTENCE = range(40, 301)
"""Characters of a sentence from which a question is written."""
NEIGHBOURS = 10
"""Passages among which one is searched that shares a name."""
READ_FOR_UNANSWERABLE = 5
"""Passages from which a question without an answer must not be answered."""

_REFERS = re.compile(r"\b(source|passage|text|document|article|above|mentioned|shared name)s?\b", re.IGNORECASE)

_DEFINES = r"(?P<name>(?:the )?{}) (?P<verb>is|was|are|were) (?P<answer>(?:an?|the) [^.,;:()]{{3,100}})"
_NUMBER = re.compile(r"\d+")
_QUESTION = re.compile(r"[^?？؟]+[?？؟]")


@dataclass(frozen=True, kw_only=True)
class QuestionPlan:
    """The wanted numbers of questions, and limits of all model calls together."""

    counts: Mapping[Kind, int]
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    concurrency: int = 4
    started: float = field(default_factory=time.monotonic)


def plan_questions(number: int, *, multi: float, unanswerable: float) -> dict[Kind, int]:
    """Return the number of questions of each kind.

    Raises:
        UsageError: the shares add up to more than 1.
    """
    if multi + unanswerable > 1:
        raise UsageError("The shares of multi-hop and unanswerable questions add up to more than 1.")
    counts: dict[Kind, int] = {"multi": round(number * multi), "unanswerable": round(number * unanswerable)}
    return {"single": number - sum(counts.values()), **counts}


@dataclass(frozen=True, kw_only=True)
class _State:
    candidate: Candidate
    made: Made | None = None


async def make_questions(
    collection: Collection, model: Model, file: WrittenQuestions, plan: QuestionPlan
) -> AsyncIterator[Made]:
    """Write questions until there are enough, no passage is left, or the budget is used up.

    Where there are fewer than wanted, `file.shortfalls` has the reason.

    Args:
        collection: its passages become questions.
        model: writes and checks.
        file: receives each question and each dropped candidate before it is yielded.
        plan: the wanted numbers, including those in the file.

    Raises:
        UsageError: the collection is empty, or the file cannot be written.
        ModelError: the model server cannot be used; what was made so far is kept.
    """
    await collection.require_documents()
    spent = Counter[str]()

    async def write(state: _State) -> dict[str, Made]:
        return {"made": await _write(state.candidate, model, collection)}

    builder = StateGraph(_State)
    builder.add_node(write)
    builder.add_edge(START, "write")
    compiled = PrivateGraph(builder).compile(name="questions")

    async def attempt(candidate: Candidate) -> Made:
        made: Made = (await compiled.ainvoke(_State(candidate=candidate)))["made"]
        return made

    file.shortfalls = {}
    attempts = Counter[Kind]()
    candidates = _candidates(collection, file, plan, attempts)
    while True:
        if not _is_affordable(plan, spent):
            file.shortfalls = dict.fromkeys(_missing(file, plan), "the budget is used up")
            return
        batch = [each async for each in _next_batch(candidates, plan.concurrency)]
        if not batch:
            file.shortfalls = {kind: _shortfall(kind, file, attempts) for kind in _missing(file, plan)}
            return
        for made in await asyncio.gather(*map(attempt, batch)):
            spent.update(calls=made.calls, tokens=made.tokens)
            is_known = made.row is not None and file.has(str(made.row["question"]))
            kept = replace(made, row=None, reason="the question was written before") if is_known else made
            if kept.row is None or file.count(kept.candidate.kind) < plan.counts[kept.candidate.kind]:
                file.add(kept)
                yield kept


async def _next_batch(candidates: AsyncIterator[Candidate], number: int) -> AsyncIterator[Candidate]:
    while number > 0 and (candidate := await anext(candidates, None)) is not None:
        number -= 1
        yield candidate


def _is_affordable(plan: QuestionPlan, spent: Mapping[str, int]) -> bool:
    budget = plan.budget
    if budget.max_seconds is not None and time.monotonic() - plan.started >= budget.max_seconds:
        return False
    calls = budget.max_calls is None or spent["calls"] + MOST_CALLS <= budget.max_calls
    return calls and (budget.max_tokens is None or spent["tokens"] < budget.max_tokens)


def _missing(file: WrittenQuestions, plan: QuestionPlan) -> list[Kind]:
    """Return the kinds of which questions are missing, that with the largest missing share first."""
    shares = {kind: 1 - file.count(kind) / number for kind, number in plan.counts.items() if number}
    return sorted((kind for kind in shares if shares[kind] > 0), key=lambda kind: -shares[kind])


async def _candidates(
    collection: Collection, file: WrittenQuestions, plan: QuestionPlan, attempts: Counter[Kind]
) -> AsyncIterator[Candidate]:
    """Yield candidates of the missing kinds, from passages in random order, and count them in `attempts`.

    The passages are gone through until none gives a candidate that was not tried.
    """
    ids = sorted(await collection.passage_ids())
    random.Random(plan.seed).shuffle(ids)  # noqa: S311 - a repeatable sample
    tried, is_fruitful = file.tried(), True
    while is_fruitful:
        is_fruitful = False
        for id_ in ids:
            kinds = [kind for kind in _missing(file, plan) if not _is_given_up(kind, file, attempts)]
            if not kinds:
                return
            if (candidate := await _candidate(collection, id_, kinds, tried)) is not None:
                is_fruitful = True
                tried.add(candidate.key)
                attempts[candidate.kind] += 1
                yield candidate


def _is_given_up(kind: Kind, file: WrittenQuestions, attempts: Mapping[Kind, int]) -> bool:
    return attempts[kind] >= ATTEMPTS * (file.count(kind) + 1)


def _shortfall(kind: Kind, file: WrittenQuestions, attempts: Mapping[Kind, int]) -> str:
    """Return why no more questions of a kind can be written."""
    if _is_given_up(kind, file, attempts):
        remedy = "The model is probably too small: use one with at least 3 billion parameters"
        return f"of {attempts[kind]} candidates too few passed the check. {remedy}"
    return _USED_UP[kind]


_USED_UP: dict[Kind, str] = {
    "single": f"every passage of at least {LEAST_CHARACTERS} characters was tried",
    "multi": "every pair of linked passages that search finds was tried",
    "unanswerable": f"every passage of at least {LEAST_CHARACTERS} characters was tried",
}


async def _candidate(collection: Collection, id_: str, kinds: Sequence[Kind], tried: set[str]) -> Candidate | None:
    """Return a candidate from a passage, of the first of these kinds for which it was not tried."""
    for passage in await collection.passages([id_]):
        if len(passage.text) < LEAST_CHARACTERS:
            continue
        for kind in kinds:
            options = (
                await _linked(collection, passage) if kind == "multi" else [Candidate(kind=kind, passages=(passage,))]
            )
            for candidate in options:
                if candidate.key not in tried:
                    return candidate
    return None


async def _linked(collection: Collection, passage: Passage) -> list[Candidate]:
    """Return the passage with each one that it names or that names it, along the entity graph."""
    query = Query(text=f"{passage.title}. {passage.text[:300]}", mode="graph", k=NEIGHBOURS)
    linked = []
    for hit in await collection.search(query):
        for reason in hit.why.reasons if hit.why else ():
            is_other = hit.passage.document_id != passage.document_id
            if is_other and reason.source == passage.id and reason.kind in ("names", "named_by"):
                order = (passage, hit.passage) if reason.kind == "names" else (hit.passage, passage)
                linked.append(Candidate(kind="multi", passages=order, name=reason.name))
    return linked


async def _write(candidate: Candidate, model: Model, collection: Collection) -> Made:
    """Write a question from a candidate, and check it."""
    caller = ModelCaller(model, MemoryArchive(), seed=candidate.key, limit=MOST_CALLS)
    try:
        row, reason = await _WRITERS[candidate.kind](candidate, caller, collection)
    except (BadReply, ContextTooLong) as error:
        row, reason = None, f"the model's reply cannot be used ({type(error).__name__})"
    records = caller.calls.values()
    tokens = sum(record["prompt_tokens"] + record["completion_tokens"] for record in records)
    return Made(candidate=candidate, row=row, reason=reason, calls=len(records), tokens=tokens)


Written = tuple[dict[str, Any] | None, str]


async def _write_single(candidate: Candidate, caller: ModelCaller, collection: Collection) -> Written:
    (passage,) = candidate.passages
    if (sentence := _telling_sentence(passage)) is None:
        return None, "the passage has no sentence with a name or a number"
    question, answer, problem = await _question_of(caller, replace(passage, text=sentence))
    if problem:
        return None, problem
    hits = await collection.search(Query(text=question, k=FOUND_AMONG))
    if passage.document_id not in {hit.passage.document_id for hit in hits}:
        return None, "search does not find the passage by the question"
    if not await _answers(caller, question, answer, candidate.passages):
        return None, "the second pass gives another answer"
    return _row(candidate, question, answer), ""


async def _question_of(caller: ModelCaller, passage: Passage) -> tuple[str, str, str]:
    """Return a question and its answer from a passage of one sentence, or the reason why there is none.

    Without a usable reply, a sentence that defines the title, as in "X is a …", gives "What is X?".
    """
    try:
        written = await caller.ask(WRITE_SINGLE, PassageInput(sources=_sources([passage])))
        question, answer = written.question, written.answer
        problem = _problem(question, answer, passage)
    except BadReply:
        question, answer, problem = "", "", "the model's reply cannot be used (BadReply)"
    if problem and (defined := re.match(_DEFINES.format(re.escape(passage.title)), passage.text, re.IGNORECASE)):
        return f"What {defined['verb'].lower()} {defined['name']}?", defined["answer"], ""
    return question, answer, problem


def _telling_sentence(passage: Passage) -> str | None:
    """Return the sentence with the most names and numbers; None if none has any."""
    suitable = [sentence for sentence in sentences(passage.text) if len(sentence) in SENTENCE]
    counts = {sentence: len(kept_names(sentence)) + len(_NUMBER.findall(sentence)) for sentence in suitable}
    best = max(counts, key=lambda sentence: counts[sentence], default=None)
    return best if best and counts[best] else None


async def _write_multi(candidate: Candidate, caller: ModelCaller, _collection: Collection) -> Written:
    first, second = candidate.passages
    given = LinkedPassagesInput(sources=_sources(candidate.passages), name=candidate.name)
    written = await caller.ask(WRITE_MULTI, given)
    if problem := _problem(written.question, written.answer, second):
        return None, problem
    if contained(written.question, [candidate.name]):
        return None, "the question contains the name that connects the passages"
    if normalise(written.answer) == normalise(candidate.name):
        return None, "the answer is the name that connects the passages"
    if not await _answers(caller, written.question, written.answer, candidate.passages):
        return None, "the second pass gives another answer"
    for passage in candidate.passages:
        if await _answers(caller, written.question, written.answer, [passage]):
            return None, "one passage alone answers it"
    steps = [
        {"question": written.first, "answer": candidate.name, "gold_id": first.id},
        {"question": written.second, "answer": written.answer, "gold_id": second.id},
    ]
    return {**_row(candidate, written.question, written.answer), "decomposition": steps}, ""


async def _write_unanswerable(candidate: Candidate, caller: ModelCaller, collection: Collection) -> Written:
    written = await caller.ask(WRITE_UNANSWERABLE, PassageInput(sources=_sources(candidate.passages)))
    if problem := _problem_of_form(written.question):
        return None, problem
    hits = await collection.search(Query(text=written.question, mode="graph", k=READ_FOR_UNANSWERABLE))
    found = {passage.id: passage for passage in [*candidate.passages, *(hit.passage for hit in hits)]}
    read = await caller.ask(READ, ReadInput(question=written.question, sources=_sources(found.values())))
    if read.answerable and read.answer.strip():
        return None, "the documents answer it"
    return _row(candidate, written.question, ""), ""


_WRITERS = {"single": _write_single, "multi": _write_multi, "unanswerable": _write_unanswerable}


async def _answers(caller: ModelCaller, question: str, answer: str, passages: Sequence[Passage]) -> bool:
    """Return whether a reader of these passages alone gives the answer."""
    read = await caller.ask(READ, ReadInput(question=question, sources=_sources(passages)))
    if not read.answerable:
        return False
    same = f1(read.answer, [answer]) >= AGREES
    return same or bool(contained(read.answer, [answer])) or bool(contained(answer, [read.answer]))


def _problem(question: str, answer: str, passage: Passage) -> str:
    """Return the reason why a question cannot be used; empty if there is none."""
    if not normalise(question) or not normalise(answer):
        return "the question or its answer is empty"
    if not contained(f"{passage.title}. {passage.text}", [answer]):
        return "the answer is not in the passage"
    if contained(question, [answer]):
        return "the question contains its answer"
    return _problem_of_form(question)


def _problem_of_form(question: str) -> str:
    if _REFERS.search(question):
        return "the question cannot be understood without the passage"
    return "" if _QUESTION.fullmatch(question.strip()) else "it is not one question"


def _row(candidate: Candidate, question: str, answer: str) -> dict[str, Any]:
    mark = sha1(question.encode(), usedforsecurity=False).hexdigest()[:8]
    gold = candidate.passages if answer else ()
    ids = {"gold_ids": [each.id for each in gold], "gold_documents": [each.document_id for each in gold]}
    about = {"id": f"{candidate.kind}-{mark}", "question": question.strip(), "answer": answer.strip()}
    return {**about, **ids, "type": candidate.kind, "made_from": candidate.key}


def _sources(passages: Iterable[Passage]) -> tuple[Source, ...]:
    return tuple(Source(title=passage.title, text=passage.text) for passage in passages)
