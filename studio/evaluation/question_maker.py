"""Evaluation questions that a model writes from the documents of a collection, each checked by a second pass.

A question that one passage answers is written from one sentence of it, which is what a small model can do. Search must
find the passage by the question.

The second pass is a call without the prompt or the reply of the first: it answers the question from the gold passages,
as a method does. A question is kept if the answers agree. One in two steps must not be answered by either passage
alone, and one without an answer not by the passages that search finds for it.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha1
from pathlib import Path
from typing import Any, Literal

from langgraph.func import entrypoint

from sleuth.agents.formatting import Source
from sleuth.agents.model import Model
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.inputs import PassageInput, ReadInput
from sleuth.agents.roles.questions import WRITE_MULTI, WRITE_SINGLE, WRITE_UNANSWERABLE, LinkedPassagesInput
from sleuth.agents.roles.reading import READ
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.tracing import traced
from sleuth.studio.evaluation.models import BudgetSpent, EvaluationBudget, EvaluationModel
from sleuth.studio.evaluation.run_folder import append_line, read_lines
from sleuth.studio.evaluation.scoring import contained, f1, normalize
from sleuth.tools.collection import Collection
from sleuth.tools.errors import BadReply, ContextTooLong, UsageError
from sleuth.tools.search import Query
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.text.names import kept_names
from sleuth.tools.text.tokenization import sentences
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
NEIGHBORS = 10
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


def plan_questions(number: int, *, multi: float, unanswerable: float) -> dict[Kind, int]:
    """Return the number of questions of each kind.

    Raises:
        UsageError: the shares add up to more than 1.
    """
    if multi + unanswerable > 1:
        raise UsageError("The shares of multi-hop and unanswerable questions add up to more than 1.")
    counts: dict[Kind, int] = {"multi": round(number * multi), "unanswerable": round(number * unanswerable)}
    return {"single": number - sum(counts.values()), **counts}


def read_made(path: Path) -> list[Row]:
    """Return the questions that a file has from an earlier run; a last line that a kill has cut off is removed.

    Raises:
        UsageError: the file cannot be read, or contains something else; then it is unchanged.
    """
    try:
        rows = read_lines(path)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Choose another file with --out.") from None
    is_ours = all(isinstance(row, dict) and "made_from" in row for row in rows)
    if not is_ours or (not rows and path.exists() and path.stat().st_size):
        raise UsageError(f"{path} was not made by this command. Choose another file with --out.")
    return read_lines(path, repair=True)


def count_kind(rows: Iterable[Row], kind: Kind) -> int:
    """Return the number of questions of a kind."""
    return sum(row["type"] == kind for row in rows)


async def make_questions(
    collection: Collection,
    model: Model,
    path: Path,
    counts: Mapping[Kind, int],
    *,
    seed: int = 0,
    budget: Budget | None = None,
    concurrency: int = 4,
) -> AsyncIterator[Row]:
    """Yield questions, and candidates that gave none, until there are enough or the passages or the budget run out.

    Args:
        collection: its passages become questions.
        model: writes and checks.
        path: receives each question before it is yielded; a rerun continues there.
        counts: the requested numbers, including those in the file.
        seed: of the order of the passages.
        budget: limits of all model calls together.
        concurrency: candidates at a time.

    Raises:
        UsageError: the collection is empty, or the file contains something else.
        StoreError: the file cannot be written.
        ModelError: the model server cannot be used; questions in the file stay.
    """
    rows = await asyncio.to_thread(read_made, path)
    await collection.require_documents()
    limited = EvaluationModel(model=model, allowance=EvaluationBudget(limits=budget or Budget()))

    @entrypoint()
    async def write(candidate: Candidate) -> Row:
        return await _write(candidate, limited, collection)

    with suppress(BudgetSpent):
        for at, (kind, number) in enumerate(counts.items()):
            candidates = _candidates(collection, kind, seed + at, rows)
            count, tried = count_kind(rows, kind), 0
            while count < number and tried < ATTEMPTS * (count + 1):
                size = min(concurrency, number - count)
                batch = [candidate for _ in range(size) if (candidate := await anext(candidates, None))]
                if not batch:
                    break
                tried += len(batch)
                calls = (write.ainvoke(candidate, traced(None, "off")) for candidate in batch)
                outcomes = await asyncio.gather(*calls, return_exceptions=True)
                for outcome in outcomes:
                    if not isinstance(outcome, BaseException):
                        yield _add(outcome, rows, path)
                if error := next((outcome for outcome in outcomes if isinstance(outcome, BaseException)), None):
                    raise error
                count = count_kind(rows, kind)


def _add(row: Row, rows: list[Row], path: Path) -> Row:
    """Append a question to the file; one that is there already is a dropped candidate."""
    if "reason" in row:
        return row
    if any(normalize(row["question"]) == normalize(earlier["question"]) for earlier in rows):
        return {"candidate": row["made_from"], "reason": "the question was written before"}
    append_line(path, row)
    rows.append(row)
    return row


async def _candidates(collection: Collection, kind: Kind, seed: int, rows: Sequence[Row]) -> AsyncIterator[Candidate]:
    """Yield the candidates of a kind that gave no question yet, from passages in random order."""
    tried = {row["made_from"] for row in rows}
    ids = sorted(await collection.passage_ids())
    random.Random(seed).shuffle(ids)  # noqa: S311 - a repeatable sample
    for id in ids:
        for passage in await collection.passages([id]):
            if len(passage.text) < LEAST_CHARACTERS:
                continue
            whole = [Candidate(kind=kind, passages=(passage,))]
            for candidate in await _linked(collection, passage) if kind == "multi" else whole:
                if candidate.key not in tried:
                    tried.add(candidate.key)
                    yield candidate


async def _linked(collection: Collection, passage: Passage) -> list[Candidate]:
    """Return the passage with each one that it names or that names it, along the entity graph."""
    query = Query(text=f"{passage.title}. {passage.text[:300]}", mode="graph", k=NEIGHBORS)
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
    suitable = [sentence for sentence in sentences(passage.text) if len(sentence) in SENTENCE]
    most = max(suitable, key=lambda text: len(kept_names(text)) + len(_NUMBER.findall(text)), default="")
    _drop_if(not kept_names(most) and not _NUMBER.search(most), "the passage has no sentence with a name or a number")
    sentence = replace(passage, text=most)
    written = await caller.ask(WRITE_SINGLE, PassageInput(sources=_sources([sentence])))
    _check(written.question, written.answer, sentence)
    hits = await collection.search(Query(text=written.question, k=FOUND_AMONG))
    documents = {hit.passage.document_id for hit in hits}
    _drop_if(passage.document_id not in documents, "search does not find the passage by the question")
    agrees = await _answers(caller, written.question, written.answer, [passage])
    _drop_if(not agrees, "the second pass gives another answer")
    return _row(candidate, written.question, written.answer)


async def _write_multi(candidate: Candidate, caller: ModelCaller, _collection: Collection) -> Row:
    first, second = candidate.passages
    inputs = LinkedPassagesInput(sources=_sources(candidate.passages), name=candidate.name)
    written = await caller.ask(WRITE_MULTI, inputs)
    question, answer = written.question, written.answer
    _check(question, answer, second)
    _drop_if(contained(question, [candidate.name]), "the question contains the name that connects the passages")
    is_name = normalize(answer) == normalize(candidate.name)
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
    passages = {passage.id: passage for passage in [*candidate.passages, *(hit.passage for hit in hits)]}
    read = await caller.ask(READ, ReadInput(question=written.question, sources=_sources(passages.values())))
    _drop_if(read.answerable and read.answer.strip(), "the documents answer it")
    return _row(candidate, written.question, "")


_WRITERS = {"single": _write_single, "multi": _write_multi, "unanswerable": _write_unanswerable}


async def _answers(caller: ModelCaller, question: str, answer: str, passages: Sequence[Passage]) -> bool:
    """Return whether a reader of these passages alone gives the answer."""
    read = await caller.ask(READ, ReadInput(question=question, sources=_sources(passages)))
    if not read.answerable:
        return False
    is_same = f1(read.answer, [answer]) >= AGREES
    return is_same or bool(contained(read.answer, [answer]) or contained(answer, [read.answer]))


def _check(question: str, answer: str, passage: Passage) -> None:
    """Raise _Dropped if a question cannot be used."""
    _drop_if(not normalize(question) or not normalize(answer), "the question or its answer is empty")
    _drop_if(not contained(f"{passage.title}. {passage.text}", [answer]), "the answer is not in the passage")
    _drop_if(contained(question, [answer]), "the question contains its answer")
    _check_form(question)


def _check_form(question: str) -> None:
    _drop_if(_REFERS.search(question), "the question cannot be understood without the passage")
    _drop_if(not _QUESTION.fullmatch(question.strip()), "it is not one question")


def _row(candidate: Candidate, question: str, answer: str) -> Row:
    mark = sha1(question.encode(), usedforsecurity=False).hexdigest()[:8]
    gold = [passage.id for passage in candidate.passages] if answer else []
    about = {"id": f"{candidate.kind}-{mark}", "question": question.strip(), "answer": answer.strip()}
    return {**about, "gold_ids": gold, "type": candidate.kind, "made_from": candidate.key}


def _sources(passages: Iterable[Passage]) -> tuple[Source, ...]:
    return tuple(Source(title=passage.title, text=passage.text) for passage in passages)
