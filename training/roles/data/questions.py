"""Questions with known answers, in JSON Lines: the question, its accepted answers, and its gold passages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from training.pools import Paragraph, lines
from training.roles.data.decompositions import GoldPassage, map_steps, question_key


class _Step(BaseModel):
    model_config = ConfigDict(extra="ignore")

    question: str
    answer: str
    paragraph: int | None = None


class _Line(BaseModel):
    """A line of a questions file, or of the CRAG benchmark's; other fields are ignored."""

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)

    id: str
    question: str
    answer: str
    answer_aliases: list[str] = []
    type: str | None = None
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


def read(files: Sequence[Path], decompositions: Mapping[str, Sequence[str]] | None = None) -> TrainingSet:
    """Return everything in these files.

    Args:
        files: questions with their paragraphs.
        decompositions: steps by `question_key`, for questions that have neither steps nor evidence triples.

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
            found.questions.append({"set": name, **_row(line, places, decompositions or {})})
    return found


def _row(line: _Line, places: Sequence[str], decompositions: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    pairs = zip(places, line.all(), strict=True)
    gold = {place: GoldPassage(place, each.title, each.text) for place, each in pairs if each.is_supporting}
    steps = [
        {"question": step.question, "answer": step.answer, "gold_id": places[step.paragraph]}
        for step in line.decomposition
        if step.paragraph is not None
    ]
    if not (line.decomposition or line.evidence_triples):
        given = decompositions.get(question_key(line.question), ())
        steps = map_steps(line.question, line.answer, given, list(gold.values()))
    return {
        **line.model_dump(include={"id", "question", "answer", "answer_aliases", "type", "evidence_triples"}),
        "gold_ids": list(gold),
        "decomposition": steps if len(steps) == len(line.decomposition) or not line.decomposition else [],
    }
