"""Training files, in JSON Lines: questions with their paragraphs, and SciFact's claims with their abstracts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from sleuth.tools.json_lines import read_lines_as
from sleuth.tools.types import Passage

Line = TypeVar("Line")


class Row(BaseModel):
    """A line of a training file; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)


class Paragraph(Row):
    """One of the paragraphs that come with a training question."""

    title: str = ""
    text: str
    is_supporting: bool = False


class TrainingStep(Row):
    """A step of a question; `paragraph` is the number of the one with the answer."""

    question: str
    answer: str
    paragraph: int | None = None


class Titled(Row):
    """A line with a title."""

    title: str


class Fact(Row):
    """A sentence of a supporting paragraph that a question takes."""

    text: str


class TrainingQuestion(Row):
    """A question with its paragraphs, or with one `paragraph` under a `title`, which answers it."""

    id: str
    split: str = ""
    question: str
    answer: str
    answers: list[str] = []
    answer_aliases: list[str] = []
    type: str | None = None
    title: str = ""
    paragraph: str = ""
    paragraphs: list[Paragraph] = []
    decomposition: list[TrainingStep] = []
    evidence_triples: list[tuple[str, str, str]] = []
    supporting_facts: list[Fact] = []
    evidence: list[Fact] = []

    def all(self) -> list[Paragraph]:
        """Return the paragraphs; supporting ones are marked."""
        alone = [Paragraph(title=self.title, text=self.paragraph, is_supporting=True)] if self.paragraph else []
        return [*alone, *self.paragraphs]


class ScientificEvidence(Row):
    """The sentences of an abstract that support or contradict a claim."""

    doc_id: int
    label: str
    sentences: list[int] = []


class ScientificClaim(Row):
    """A claim of SciFact."""

    id: str
    split: str = ""
    claim: str
    evidence: list[ScientificEvidence]
    cited_doc_ids: list[int]


class Abstract(Row):
    """An abstract of SciFact."""

    id: int
    title: str
    abstract: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSet:
    """One collection for all files, a passage for each distinct paragraph, and the questions about it."""

    passages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Title and text by id."""
    questions: list[dict[str, Any]] = field(default_factory=list)
    """Rows of a questions file, each with its `set`."""

    def corpus(self) -> Iterator[Mapping[str, str]]:
        """Yield the lines of a corpus file."""
        for id, (title, text) in self.passages.items():
            yield {"id": id, "title": title, "text": text}


def passage_of(id: str, title: str, text: str) -> Passage:
    """Return a passage that is a document of its own, as in a corpus file."""
    return Passage(id=id, document_id=id, title=title, text=text, start=0, end=len(text))


def read(files: Sequence[Path]) -> TrainingSet:
    """Return the questions and all paragraphs in these files; raises UsageError, as `lines` does."""
    found = TrainingSet()
    ids: dict[tuple[str, str], str] = {}
    for file in files:
        name = f"{file.parent.name}/{file.name.partition('.')[0]}"
        for line in lines(file, TrainingQuestion):
            paragraphs = line.all()
            places = [ids.setdefault((each.title, each.text), f"p{len(ids)}") for each in paragraphs]
            found.passages.update(zip(places, [(each.title, each.text) for each in paragraphs], strict=True))
            gold = [place for place, each in zip(places, paragraphs, strict=True) if each.is_supporting]
            steps = [
                {"question": step.question, "answer": step.answer, "gold_id": places[step.paragraph]}
                for step in line.decomposition
                if step.paragraph is not None
            ]
            about = line.model_dump(include={"id", "question", "answer", "answer_aliases", "type", "evidence_triples"})
            known = steps if len(steps) == len(line.decomposition) else []
            found.questions.append(
                {"set": name, **about, "gold_ids": list(dict.fromkeys(gold)), "decomposition": known}
            )
    return found


def lines(file: Path, kind: type[Line]) -> Iterator[Line]:
    """Yield the lines of a training file, packed or not; raises UsageError, naming the line, for any other kind."""
    return (line for _, line in read_lines_as(kind, file, form="Correct or remove the line."))
