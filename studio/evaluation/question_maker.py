"""Evaluation questions that a model writes from the documents of a collection, each checked by a second pass.

A question that one passage answers is written from one sentence of it, which is what a small model can do. Search must
find the passage by the question.

The second pass is a call that knows nothing of the first: it answers the question from the gold passages, as a method
does. A question is kept if the answers agree. One in two steps must not be answered by either passage alone, and one
without an answer not by the passages that search finds for it.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha1
from pathlib import Path
from typing import Any, Literal

from langgraph.func import entrypoint

from sleuth.agents.formatting import Source
from sleuth.agents.model import Model
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.inputs import PassageInput, ReadInput
from sleuth.agents.roles.questions import (
    WRITE_MULTI,
    WRITE_SINGLE,
    WRITE_UNANSWERABLE,
    LinkedPassagesInput,
)
from sleuth.agents.roles.reading import READ
from sleuth.graphs.core.context import Budget
from sleuth.studio.evaluation.models import BudgetSpent, EvaluationBudget, EvaluationModel
from sleuth.studio.evaluation.run_folder import append_line, read_lines
from sleuth.studio.evaluation.scoring import contained, f1, normalise
from sleuth.tools.collection import Collection
from sleuth.tools.errors import BadReply, ContextTooLong, UsageError
from sleuth.tools.search import Query
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.text.names import kept_names
from sleuth.tools.text.sentences import sentences
from sleuth.tools.tracing.callbacks import traced
from sleuth.tools.types import Passage

AGREES = 0.6
"""F1 from which two answers count as the same."""
LEAST_CHARACTERS = 120
"""Shorter passages seldom contain a question."""
ATTEMPTS = 10
"""Candidates of a kind that are tried for each question; if none of them gives one, the kind is given up."""
FOUND_AMONG = 5
"""Passages of a search by the question: its own must be one of them, and none may answer an unanswerable question."""
SENTENCE = range(40, 301)
"""Characters of a sentence from which a question is written."""
NEIGHBOURS = 10
"""Passages among which one is searched that shares a name."""

Kind = Literal["single", "multi", "unanswerable"]

Row = dict[str, Any]
"""A question as a line of a question file, or a dropped candidate with its `reason`."""

_REFERS = re.compile(r"\b(source|passage|text|document|article|above|mentioned|shared name)s?\b", re.IGNORECASE)
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
        """Identifies the candidate in the files of questions and of dropped ones."""
        return "+".join([self.kind, *(passage.id for passage in self.passages)])


class WrittenQuestions:
    """The questions made so far, and next to them the candidates that were dropped: a rerun continues there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shortfalls: dict[Kind, str] = {}
        """Why there are fewer questions of a kind than wanted."""
        self.dropped_path = path.with_suffix(".dropped.jsonl")
        self.rows = _lines(path)
        self.dropped = _lines(self.dropped_path)

    def count(self, kind: Kind) -> int:
        """Return the number of questions of a kind."""
        return sum(row.get("type") == kind for row in self.rows)

    def add(self, row: Row) -> Row:
        """Append a question, or a dropped candidate; a question that is there already is dropped."""
        if any(normalise(row.get("question", "")) == normalise(known["question"]) for known in self.rows):
            row = {"candidate": row["made_from"], "reason": "the question was written before"}
        append_line(self.dropped_path if "reason" in row else self.path, row)
        (self.dropped if "reason" in row else self.rows).append(row)
        return row

    def reasons(self) -> Counter[str]:
        """Return how many candidates were dropped for each reason."""
        return Counter(str(row["reason"]) for row in self.dropped)


def _lines(path: Path) -> list[Row]:
    """Return the rows of a file, and cut off a last line that a kill has truncated; no other file is changed."""
    try:
        rows = read_lines(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Choose another file with --out.") from None
    is_ours = all(isinstance(row, dict) and {"made_from", "candidate"} & row.keys() for row in rows)
    if not is_ours or (not rows and path.exists() and path.stat().st_size):
        raise UsageError(f"{path} was not made by this command. Choose another file with --out.")
    return read_lines(path, repair=True)


def plan_questions(number: int, *, multi: float, unanswerable: float) -> dict[Kind, int]:
    """Return the number of questions of each kind.

    Raises:
        UsageError: the shares add up to more than 1.
    """
    if multi + unanswerable > 1:
        raise UsageError("The shares of multi-hop and unanswerable questions add up to more than 1.")
    counts: dict[Kind, int] = {"multi": round(number * multi), "unanswerable": round(number * unanswerable)}
    return {"single": number - sum(counts.values()), **counts}


async def make_questions(
    collection: Collection,
    model: Model,
    file: WrittenQuestions,
    counts: Mapping[Kind, int],
    *,
    seed: int = 0,
    budget: Budget | None = None,
    concurrency: int = 4,
) -> AsyncIterator[Row]:
    """Write questions until there are enough, no passage is left, or the budget is used up.

    Where there are fewer questions than wanted, `file.shortfalls` has the reason.

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
    limited = EvaluationModel(model=model, allowance=EvaluationBudget(limits=budget or Budget()))

    @entrypoint()
    async def write(candidate: Candidate) -> Row:
        return await _write(candidate, limited, collection)

    file.shortfalls = {}
    for at, (kind, wanted) in enumerate(counts.items()):
        candidates, tried = _candidates(collection, kind, seed + at, file), 0
        while kind not in file.shortfalls and (missing := wanted - file.count(kind)) > 0:
            batch = [each for _ in range(min(concurrency, missing)) if (each := await anext(candidates, None))]
            rows = (write.ainvoke(each, traced(None, "off")) for each in batch)
            for row in await asyncio.gather(*rows, return_exceptions=True):
                if isinstance(row, BudgetSpent):
                    file.shortfalls[kind] = "the budget is used up"
                elif isinstance(row, BaseException):
                    raise row
                else:
                    yield file.add(row)
            tried += len(batch)
            is_given_up = not batch or tried >= ATTEMPTS * (file.count(kind) + 1)
            if is_given_up and file.count(kind) < wanted:
                file.shortfalls.setdefault(kind, _shortfall(kind, tried if batch else 0))


def _shortfall(kind: Kind, failed: int) -> str:
    """Return why no more questions of a kind can be written: candidates that failed the check, or none are left."""
    if failed:
        remedy = "The model is probably too small: use one with at least 3 billion parameters"
        return f"of {failed} candidates too few passed the check. {remedy}"
    if kind == "multi":
        return "every pair of linked passages that search finds was tried"
    return f"every passage of at least {LEAST_CHARACTERS} characters was tried"


async def _candidates(
    collection: Collection, kind: Kind, seed: int, file: WrittenQuestions
) -> AsyncIterator[Candidate]:
    """Yield the candidates of a kind that were not tried, from passages in random order."""
    ids = sorted(await collection.passage_ids())
    random.Random(seed).shuffle(ids)  # noqa: S311 - a repeatable sample
    tried = {row["candidate"] for row in file.dropped} | {row.get("made_from") for row in file.rows}
    for id_ in ids:
        for passage in await collection.passages([id_]):
            if len(passage.text) < LEAST_CHARACTERS:
                continue
            whole = [Candidate(kind=kind, passages=(passage,))]
            for candidate in await _linked(collection, passage) if kind == "multi" else whole:
                if candidate.key not in tried:
                    tried.add(candidate.key)
                    yield candidate


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


def _drop_if(fault: object, reason: str) -> None:
    if fault:
        raise _Dropped(reason)


async def _write(candidate: Candidate, model: Model, collection: Collection) -> Row:
    """Write a question from a candidate, and check it."""
    caller = ModelCaller(model, MemoryArchive(), seed=candidate.key)
    try:
        return await _WRITERS[candidate.kind](candidate, caller, collection)
    except _Dropped as dropped:
        reason = str(dropped)
    except (BadReply, ContextTooLong) as error:
        reason = f"the model's reply cannot be used ({type(error).__name__})"
    return {"candidate": candidate.key, "reason": reason}


async def _write_single(candidate: Candidate, caller: ModelCaller, collection: Collection) -> Row:
    (passage,) = candidate.passages
    sentence = replace(passage, text=_telling_sentence(passage))
    written = await caller.ask(WRITE_SINGLE, PassageInput(sources=_sources([sentence])))
    question, answer = written.question, written.answer
    _check(question, answer, sentence)
    hits = await collection.search(Query(text=question, k=FOUND_AMONG))
    is_found = passage.document_id in {hit.passage.document_id for hit in hits}
    _drop_if(not is_found, "search does not find the passage by the question")
    _drop_if(not await _answers(caller, question, answer, [passage]), "the second pass gives another answer")
    return _row(candidate, question, answer)


def _telling_sentence(passage: Passage) -> str:
    """Return the sentence with the most names and numbers."""
    suitable = [sentence for sentence in sentences(passage.text) if len(sentence) in SENTENCE]
    counts = {sentence: len(kept_names(sentence)) + len(_NUMBER.findall(sentence)) for sentence in suitable}
    best = max(counts, key=lambda sentence: counts[sentence], default=None)
    if not best or not counts[best]:
        raise _Dropped("the passage has no sentence with a name or a number")
    return best


async def _write_multi(candidate: Candidate, caller: ModelCaller, _collection: Collection) -> Row:
    first, second = candidate.passages
    given = LinkedPassagesInput(sources=_sources(candidate.passages), name=candidate.name)
    written = await caller.ask(WRITE_MULTI, given)
    question, answer = written.question, written.answer
    _check(question, answer, second)
    _drop_if(contained(question, [candidate.name]), "the question contains the name that connects the passages")
    is_name = normalise(answer) == normalise(candidate.name)
    _drop_if(is_name, "the answer is the name that connects the passages")
    _drop_if(not await _answers(caller, question, answer, [first, second]), "the second pass gives another answer")
    for passage in candidate.passages:
        _drop_if(await _answers(caller, question, answer, [passage]), "one passage alone answers it")
    steps = [
        {"question": written.first, "answer": candidate.name, "gold_id": first.id},
        {"question": written.second, "answer": answer, "gold_id": second.id},
    ]
    return {**_row(candidate, question, answer), "decomposition": steps}


async def _write_unanswerable(candidate: Candidate, caller: ModelCaller, collection: Collection) -> Row:
    written = await caller.ask(WRITE_UNANSWERABLE, PassageInput(sources=_sources(candidate.passages)))
    _check_form(written.question)
    hits = await collection.search(Query(text=written.question, mode="graph", k=FOUND_AMONG))
    found = {passage.id: passage for passage in [*candidate.passages, *(hit.passage for hit in hits)]}
    read = await caller.ask(READ, ReadInput(question=written.question, sources=_sources(found.values())))
    _drop_if(read.answerable and read.answer.strip(), "the documents answer it")
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
    _drop_if(not normalise(question) or not normalise(answer), "the question or its answer is empty")
    _drop_if(not contained(f"{passage.title}. {passage.text}", [answer]), "the answer is not in the passage")
    _drop_if(contained(question, [answer]), "the question contains its answer")
    _check_form(question)


def _check_form(question: str) -> None:
    _drop_if(_REFERS.search(question), "the question cannot be understood without the passage")
    _drop_if(not _QUESTION.fullmatch(question.strip()), "it is not one question")


def _row(candidate: Candidate, question: str, answer: str) -> Row:
    mark = sha1(question.encode(), usedforsecurity=False).hexdigest()[:8]
    gold = candidate.passages if answer else ()
    ids = {"gold_ids": [each.id for each in gold], "gold_documents": [each.document_id for each in gold]}
    about = {"id": f"{candidate.kind}-{mark}", "question": question.strip(), "answer": answer.strip()}
    return {**about, **ids, "type": candidate.kind, "made_from": candidate.key}


def _sources(passages: Iterable[Passage]) -> tuple[Source, ...]:
    return tuple(Source(title=passage.title, text=passage.text) for passage in passages)
