"""Questions with known answers, in JSON Lines: the question, its accepted answers, and its gold passages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from sleuth.studio.training.pools import Paragraph, lines


class _Step(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question: str
    answer: str
    paragraph: int


class _Line(BaseModel):
    """A line of a questions file, or of the CRAG benchmark's; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str
    question: str
    answer: str
    answer_aliases: list[str] = []
    type: str = ""
    title: str = ""
    paragraph: str = ""
    paragraphs: list[Paragraph] = []
    decomposition: list[_Step] = []
    evidence_triples: list[tuple[str, str, str]] = []

    def all(self) -> list[Paragraph]:
        """Return the paragraphs; supporting ones are marked."""
        alone = [Paragraph(title=self.title, text=self.paragraph, is_supporting=True)] if self.paragraph else []
        return [*alone, *self.paragraphs]


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainingSet:
    """One collection for all files, a passage for each distinct paragraph, and the questions about it."""

    passages: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Title and text by id."""
    questions: list[dict[str, Any]] = field(default_factory=list)
    """Rows of a questions file, each with its `set`."""

    def corpus(self) -> Iterable[Mapping[str, str]]:
        """Yield the lines of a corpus file."""
        for id, (title, text) in self.passages.items():
            yield {"id": id, "title": title, "text": text}


def read(files: Sequence[Path]) -> TrainingSet:
    """Return everything in these files.

    Raises:
        UsageError: a file or a line of it cannot be used; names file and line.
    """
    found = TrainingSet()
    ids: dict[tuple[str, str], str] = {}
    for file in files:
        name = f"{file.parent.name}/{file.name.partition('.')[0]}"
        for line in lines(file, _Line):
            places = [ids.setdefault((each.title, each.text), f"p{len(ids)}") for each in line.all()]
            found.passages.update(zip(places, [(each.title, each.text) for each in line.all()], strict=True))
            found.questions.append({"set": name, **_row(line, places)})
    return found


def _row(line: _Line, places: Sequence[str]) -> dict[str, Any]:
    gold = [place for place, each in zip(places, line.all(), strict=True) if each.is_supporting]
    steps = [
        {"question": step.question, "answer": step.answer, "gold_id": places[step.paragraph]}
        for step in line.decomposition
    ]
    return {
        **line.model_dump(include={"id", "question", "answer", "answer_aliases", "type", "evidence_triples"}),
        "gold_ids": list(dict.fromkeys(gold)),
        "decomposition": steps,
    }
