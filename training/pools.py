"""Training questions with the pools that search finds for them: what the ranker learns from."""

import gzip
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from sleuth.tools.errors import UsageError
from sleuth.tools.search import Query
from sleuth.tools.search.entity_graph.index import GraphIndex
from sleuth.tools.search.entity_graph.search import find_candidates
from sleuth.tools.search.keyword_index import KeywordIndex
from sleuth.tools.search.ranking import matrix
from sleuth.tools.types import Passage

Line = TypeVar("Line")


class Paragraph(BaseModel):
    """One of the paragraphs that come with a training question."""

    model_config = ConfigDict(extra="ignore")

    title: str = ""
    text: str
    is_supporting: bool = False


class _Line(BaseModel):
    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str
    question: str
    paragraphs: list[Paragraph]


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A question to learn from; `gold` are ids of passages of the union of all files' paragraphs."""

    set: str
    id: str
    text: str
    gold: frozenset[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """Candidates that search found for a question: a row of features for each, and which of them are gold."""

    question: Question
    ids: tuple[str, ...]
    rows: NDArray[np.float32]
    gold: NDArray[np.bool_]


def read_training(files: Sequence[Path]) -> tuple[list[Passage], list[Question]]:
    """Return all files' paragraphs as one collection without repeats, and the questions.

    Raises:
        UsageError: a file or a line of it cannot be used; names file and line.
    """
    passages: dict[tuple[str, str], Passage] = {}
    questions = []
    for file in files:
        for line in lines(file, _Line):
            gold = set()
            for paragraph in line.paragraphs:
                place = (paragraph.title, paragraph.text)
                id_ = f"p{len(passages)}"
                passage = passages.setdefault(
                    place,
                    Passage(id=id_, document_id=id_, title=place[0], text=place[1], start=0, end=len(place[1])),
                )
                if paragraph.is_supporting:
                    gold.add(passage.id)
            name = f"{file.parent.name}/{file.name.partition('.')[0]}"
            if gold:
                questions.append(Question(set=name, id=line.id, text=line.question, gold=frozenset(gold)))
    return list(passages.values()), questions


def pools(passages: Sequence[Passage], questions: Sequence[Question]) -> tuple[list[Pool], tuple[str, ...]]:
    """Search the passages for every question as graph search does, without vectors; and the features' names."""
    by_id = {passage.id: passage for passage in passages}
    found: list[Pool] = []
    names: tuple[str, ...] = ()
    with TemporaryDirectory() as folder:
        index, keywords = GraphIndex(Path(folder) / "graph.db"), KeywordIndex(Path(folder) / "words")
        for each in (index, keywords):
            each.apply(upsert=passages, delete=[])
        for question in questions:
            asked, candidates = find_candidates(
                Query(text=question.text), index, keywords, lambda ids: [by_id[id_] for id_ in ids]
            )
            if not candidates:
                continue
            rows, names = matrix(asked, candidates)
            ids = tuple(candidate.passage.id for candidate in candidates)
            gold = np.array([id_ in question.gold for id_ in ids])
            found.append(Pool(question=question, ids=ids, rows=rows, gold=gold))
        index.close()
    return found, names


def lines(file: Path, kind: type[Line]) -> Iterator[Line]:
    """Yield the lines of a training file, gzipped or not; raises UsageError, naming the line, for any other kind."""
    adapter = TypeAdapter(kind)
    try:
        data = file.read_bytes()
        text = gzip.decompress(data) if file.suffix == ".gz" else data
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"The training file {file} cannot be read: {error}.") from None
    for number, raw in enumerate(text.splitlines(), start=1):
        if raw.strip():
            try:
                yield adapter.validate_json(raw)
            except ValidationError as error:
                raise UsageError(f"{file}, line {number} cannot be used. Correct or remove it: {error}") from None
