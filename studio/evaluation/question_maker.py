"""Evaluation questions that a model writes from the documents of a collection, each checked by a second pass.

A question that one passage answers is written from one sentence of it, which is what a small model can do; if its reply
cannot be used and the sentence defines the title, from a template. Search must find the passage by the question.

The second pass is a call that knows nothing of the first: it answers the question from the gold passages, as a method
does. A question is kept if the answers agree. One in two steps must not be answered by either passage alone, and one
without an answer not by the passages that search finds for it.
"""

import asyncio
import json
import os
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha1
from pathlib import Path
from typing import Any, Literal

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
from sleuth.studio.evaluation.models import BudgetSpent, EvaluationBudget, EvaluationModel
from sleuth.studio.evaluation.run_folder import append_line
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

Kind = Literal["single", "multi", "unanswerable"]

_REFERS = re.compile(r"\b(source|passage|text|document|article|above|mentioned|shared name)s?\b", re.IGNORECASE)

_DEFINES = r"(?P<name>(?:the )?{}) (?P<verb>is|was|are|were) (?P<answer>(?:an?|the) [^.,;:()]{{3,100}})"
_NUMBER = re.compile(r"\d+")
_QUESTION = re.compile(r"[^?？؟]+[?？؟]")


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Passages for one question; `name` connects those of a question in two steps."""

    kind: Kind
    passages: tuple[Passage, ...]
    name: str = ""

    @property
    def key(self) -> str:
        """Identifies the candidate in the file of dropped ones."""
        return "+".join([self.kind, *(passage.id for passage in self.passages)])


@dataclass(frozen=True, kw_only=True)
class Made:
    """A question as a line of a question file, or the reason why a candidate was dropped."""

    candidate: Candidate
    row: Mapping[str, Any] | None = None
    reason: str = ""
    tokens: int = 0


class WrittenQuestions:
    """The questions made so far, and next to them the candidates that were dropped: a rerun continues there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shortfalls: dict[Kind, str] = {}
        """Why there are fewer questions of a kind than wanted."""
        self.dropped_path = path.with_suffix(".dropped.jsonl")
        self.rows = _lines(path)
        self.dropped = _lines(self.dropped_path)

    def tried(self) -> set[str]:
        """Return the keys of all candidates that are done."""
        return {str(row["candidate"]) for row in self.dropped} | {str(row.get("made_from")) for row in self.rows}

    def count(self, kind: Kind) -> int:
        """Return the number of questions of a kind."""
        return sum(row.get("type") == kind for row in self.rows)

    def has(self, question: str) -> bool:
        """Return whether the question is there already."""
        return any(normalise(str(row["question"])) == normalise(question) for row in self.rows)

    def add(self, made: Made) -> None:
        """Append a question or a dropped candidate."""
        if made.row is not None:
            append_line(self.path, made.row)
            self.rows.append(dict(made.row))
        else:
            row = {"candidate": made.candidate.key, "reason": made.reason}
            append_line(self.dropped_path, row)
            self.dropped.append(row)

    def reasons(self) -> Counter[str]:
        """Return how many candidates were dropped for each reason."""
        return Counter(str(row["reason"]) for row in self.dropped)


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, and cut off a last line that a kill has truncated; no other file is changed."""
    try:
        *lines, last = (path.read_bytes() if path.exists() else b"").split(b"\n")
        rows = [json.loads(line) for line in lines]
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Choose another file with --out.") from None
    cut = len(last)
    with suppress(ValueError):
        rows.append(json.loads(last))
        cut = 0
    if (cut and not rows) or not all(isinstance(row, dict) and {"made_from", "candidate"} & row.keys() for row in rows):
        raise UsageError(f"{path} was not made by this command. Choose another file with --out.")
    if cut:
        os.truncate(path, path.stat().st_size - cut)
    elif last:
        with path.open("a", encoding="utf-8") as file:
            file.write("\n")
    return rows


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
    collection: Collection,
    model: Model,
    file: WrittenQuestions,
    counts: Mapping[Kind, int],
    *,
    seed: int = 0,
    budget: Budget | None = None,
    concurrency: int = 4,
) -> AsyncIterator[Made]:
    """Write questions until there are enough, no passage is left, or the budget is used up.

    Where there are fewer than wanted, `file.shortfalls` has the reason.

    Args:
        collection: its passages become questions.
        model: writes and checks.
        file: receives each question and each dropped candidate before it is yielded.
        counts: the wanted numbers, including those in the file.
        seed: of the order of the passages.
        budget: limits of all model calls together.
        concurrency: candidates at a time.

    Raises:
        UsageError: the collection is empty.
        StoreError: the file cannot be written.
        ModelError: the model server cannot be used; what was made so far is kept.
    """
    await collection.require_documents()

    async def write(state: _State) -> dict[str, Made]:
        return {"made": await _write(state.candidate, limited, collection)}

    limited = EvaluationModel(model=model, allowance=EvaluationBudget(limits=budget or Budget()))
    builder = StateGraph(_State)
    builder.add_node(write)
    builder.add_edge(START, "write")
    compiled = PrivateGraph(builder).compile(name="questions")
    file.shortfalls = {}
    attempts, is_spent = Counter[Kind](), False
    candidates = _candidates(collection, file, counts, seed, attempts)
    while not is_spent and (batch := [each for _ in range(concurrency) if (each := await anext(candidates, None))]):
        states = (compiled.ainvoke(_State(candidate=each)) for each in batch)
        for state in await asyncio.gather(*states, return_exceptions=True):
            if isinstance(state, BudgetSpent):
                is_spent = True
            elif isinstance(state, BaseException):
                raise state
            elif (made := _added(state["made"], file, counts)) is not None:
                yield made
    reasons = {kind: _shortfall(kind, file, attempts) for kind in _missing(file, counts)}
    file.shortfalls = dict.fromkeys(reasons, "the budget is used up") if is_spent else reasons


def _added(made: Made, file: WrittenQuestions, counts: Mapping[Kind, int]) -> Made | None:
    """Add a question or a dropped candidate to the file; None if there are enough questions of its kind."""
    if made.row is not None and file.has(str(made.row["question"])):
        made = replace(made, row=None, reason="the question was written before")
    if made.row is not None and file.count(made.candidate.kind) >= counts[made.candidate.kind]:
        return None
    file.add(made)
    return made


def _missing(file: WrittenQuestions, counts: Mapping[Kind, int]) -> list[Kind]:
    """Return the kinds of which questions are missing, that with the largest missing share first."""
    shares = {kind: 1 - file.count(kind) / number for kind, number in counts.items() if number}
    return sorted((kind for kind in shares if shares[kind] > 0), key=lambda kind: -shares[kind])


async def _candidates(
    collection: Collection,
    file: WrittenQuestions,
    counts: Mapping[Kind, int],
    seed: int,
    attempts: Counter[Kind],
) -> AsyncIterator[Candidate]:
    """Yield candidates of the missing kinds, from passages in random order, and count them in `attempts`.

    The passages are gone through until none gives a candidate that was not tried.
    """
    ids = sorted(await collection.passage_ids())
    random.Random(seed).shuffle(ids)  # noqa: S311 - a repeatable sample
    tried, is_fruitful = file.tried(), True
    while is_fruitful:
        is_fruitful = False
        for id_ in ids:
            kinds = [kind for kind in _missing(file, counts) if not _is_given_up(kind, file, attempts)]
            if not kinds:
                return
            candidate = await _candidate(collection, id_, kinds, tried)
            if candidate:
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
    if kind == "multi":
        return "every pair of linked passages that search finds was tried"
    return f"every passage of at least {LEAST_CHARACTERS} characters was tried"


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


class _Dropped(Exception):
    """A candidate gives no question; has the reason."""


async def _write(candidate: Candidate, model: Model, collection: Collection) -> Made:
    """Write a question from a candidate, and check it."""
    caller = ModelCaller(model, MemoryArchive(), seed=candidate.key)
    row, reason = None, ""
    try:
        row = await _WRITERS[candidate.kind](candidate, caller, collection)
    except _Dropped as dropped:
        reason = str(dropped)
    except (BadReply, ContextTooLong) as error:
        reason = f"the model's reply cannot be used ({type(error).__name__})"
    tokens = sum(record["prompt_tokens"] + record["completion_tokens"] for record in caller.calls.values())
    return Made(candidate=candidate, row=row, reason=reason, tokens=tokens)


async def _write_single(candidate: Candidate, caller: ModelCaller, collection: Collection) -> dict[str, Any]:
    (passage,) = candidate.passages
    question, answer = await _question_of(caller, replace(passage, text=_telling_sentence(passage)))
    hits = await collection.search(Query(text=question, k=FOUND_AMONG))
    if passage.document_id not in {hit.passage.document_id for hit in hits}:
        raise _Dropped("search does not find the passage by the question")
    if not await _answers(caller, question, answer, candidate.passages):
        raise _Dropped("the second pass gives another answer")
    return _row(candidate, question, answer)


async def _question_of(caller: ModelCaller, passage: Passage) -> tuple[str, str]:
    """Return a question and its answer from a passage of one sentence.

    Without a usable reply, a sentence that defines the title, as in "X is a …", gives "What is X?".
    """
    try:
        written = await caller.ask(WRITE_SINGLE, PassageInput(sources=_sources([passage])))
        _check(written.question, written.answer, passage)
    except (BadReply, _Dropped):
        defined = re.match(_DEFINES.format(re.escape(passage.title)), passage.text, re.IGNORECASE)
        if not defined:
            raise
        return f"What {defined['verb'].lower()} {defined['name']}?", defined["answer"]
    return written.question, written.answer


def _telling_sentence(passage: Passage) -> str:
    """Return the sentence with the most names and numbers."""
    suitable = [sentence for sentence in sentences(passage.text) if len(sentence) in SENTENCE]
    counts = {sentence: len(kept_names(sentence)) + len(_NUMBER.findall(sentence)) for sentence in suitable}
    best = max(counts, key=lambda sentence: counts[sentence], default=None)
    if not best or not counts[best]:
        raise _Dropped("the passage has no sentence with a name or a number")
    return best


async def _write_multi(candidate: Candidate, caller: ModelCaller, _collection: Collection) -> dict[str, Any]:
    first, second = candidate.passages
    given = LinkedPassagesInput(sources=_sources(candidate.passages), name=candidate.name)
    written = await caller.ask(WRITE_MULTI, given)
    _check(written.question, written.answer, second)
    if contained(written.question, [candidate.name]):
        raise _Dropped("the question contains the name that connects the passages")
    if normalise(written.answer) == normalise(candidate.name):
        raise _Dropped("the answer is the name that connects the passages")
    if not await _answers(caller, written.question, written.answer, candidate.passages):
        raise _Dropped("the second pass gives another answer")
    for passage in candidate.passages:
        if await _answers(caller, written.question, written.answer, [passage]):
            raise _Dropped("one passage alone answers it")
    steps = [
        {"question": written.first, "answer": candidate.name, "gold_id": first.id},
        {"question": written.second, "answer": written.answer, "gold_id": second.id},
    ]
    return {**_row(candidate, written.question, written.answer), "decomposition": steps}


async def _write_unanswerable(candidate: Candidate, caller: ModelCaller, collection: Collection) -> dict[str, Any]:
    written = await caller.ask(WRITE_UNANSWERABLE, PassageInput(sources=_sources(candidate.passages)))
    _check_form(written.question)
    hits = await collection.search(Query(text=written.question, mode="graph", k=READ_FOR_UNANSWERABLE))
    found = {passage.id: passage for passage in [*candidate.passages, *(hit.passage for hit in hits)]}
    read = await caller.ask(READ, ReadInput(question=written.question, sources=_sources(found.values())))
    if read.answerable and read.answer.strip():
        raise _Dropped("the documents answer it")
    return _row(candidate, written.question, "")


_WRITERS = {"single": _write_single, "multi": _write_multi, "unanswerable": _write_unanswerable}


async def _answers(caller: ModelCaller, question: str, answer: str, passages: Sequence[Passage]) -> bool:
    """Return whether a reader of these passages alone gives the answer."""
    read = await caller.ask(READ, ReadInput(question=question, sources=_sources(passages)))
    if not read.answerable:
        return False
    same = f1(read.answer, [answer]) >= AGREES
    return same or bool(contained(read.answer, [answer])) or bool(contained(answer, [read.answer]))


def _check(question: str, answer: str, passage: Passage) -> None:
    """Raise _Dropped if a question cannot be used."""
    if not normalise(question) or not normalise(answer):
        raise _Dropped("the question or its answer is empty")
    if not contained(f"{passage.title}. {passage.text}", [answer]):
        raise _Dropped("the answer is not in the passage")
    if contained(question, [answer]):
        raise _Dropped("the question contains its answer")
    _check_form(question)


def _check_form(question: str) -> None:
    if _REFERS.search(question):
        raise _Dropped("the question cannot be understood without the passage")
    if not _QUESTION.fullmatch(question.strip()):
        raise _Dropped("it is not one question")


def _row(candidate: Candidate, question: str, answer: str) -> dict[str, Any]:
    mark = sha1(question.encode(), usedforsecurity=False).hexdigest()[:8]
    gold = candidate.passages if answer else ()
    ids = {"gold_ids": [each.id for each in gold], "gold_documents": [each.document_id for each in gold]}
    about = {"id": f"{candidate.kind}-{mark}", "question": question.strip(), "answer": answer.strip()}
    return {**about, **ids, "type": candidate.kind, "made_from": candidate.key}


def _sources(passages: Iterable[Passage]) -> tuple[Source, ...]:
    return tuple(Source(title=passage.title, text=passage.text) for passage in passages)
