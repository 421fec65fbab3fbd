"""Questions with known answers, in JSON Lines, and the systems to compare on them: methods with settings."""

import random
from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, field_validator

from sleuth.graphs.registry import configure, method
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.json_lines import read_lines_as
from sleuth.tools.settings import Profile
from sleuth.tools.web_pages.page import Page

FALSE_PREMISE = "false_premise"
"""The benchmark's type of question to which "invalid question" is a right answer, too."""

INVALID = "invalid question"
"""An accepted answer of the benchmark to a question with a false premise; there it is no refusal."""


class Hop(BaseModel):
    """One reasoning step towards an answer; `#1` in its question is replaced by the answer of the first step."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    question: str
    answer: str
    gold_id: str | None = None


def _either(*names: str, **more: Any) -> Any:  # noqa: ANN401 - any field
    """Return a field that goes by several names."""
    return Field(validation_alias=AliasChoices(*names), **more)


class _Line(BaseModel):
    """A line of a questions file, or of the CRAG benchmark's; other fields are only in its row."""

    model_config = ConfigDict(extra="allow", coerce_numbers_to_str=True)

    id: str | None = _either("id", "interaction_id", default=None)
    question: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = _either("question", "query")
    answer: str | None = None
    answer_aliases: list[str] = _either("answer_aliases", "alternative_answers", default=[])
    gold_ids: list[str] = []
    type: str | None = _either("type", "question_type", default=None)
    decomposition: list[Hop] = []
    evidence_triples: list[tuple[str, str, str]] = []
    asked_at: str = _either("asked_at", "query_time", default="")
    search_results: list[Page] = []

    @field_validator("answer_aliases", mode="before")
    @classmethod
    def _parse_aliases(cls, value: Any) -> Any:  # noqa: ANN401 - as pydantic has it
        """Parse the benchmark's list, which is a Python literal within a text."""
        try:
            return literal_eval(value) if isinstance(value, str) else value
        except SyntaxError as error:
            raise ValueError(f"no list: {value[:60]!r}") from error


@dataclass(frozen=True, kw_only=True, slots=True)
class GoldQuestion:
    """A question, its accepted answers (none: only its search is scored), and its gold passages.

    `gold` are ids of passages or of documents; `set` names the file that it comes from. `pages` are searched instead of
    the collection, and `asked_at` is the time of asking, for methods that use it.
    """

    set: str
    id: str
    question: str
    answers: tuple[str, ...] = ()
    gold: tuple[str, ...] = ()
    type: str = ""
    decomposition: tuple[Hop, ...] = ()
    asked_at: str = ""
    pages: tuple[Page, ...] = field(default=(), repr=False)
    row: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """The line of the file, with our field names and without its pages."""

    @property
    def key(self) -> str:
        """The id of the question among those of all files."""
        return f"{self.set}/{self.id}"

    @property
    def hops(self) -> int | None:
        """Steps to the answer: those of the decomposition, else one per gold passage; None if neither is given."""
        return len(self.decomposition) or len(self.gold) or None

    def group(self, by: Literal["set", "type", "hops"]) -> str:
        """Return the question's group when results are split."""
        return str(getattr(self, by) or "not given")


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionFile:
    """The content of a question file, with its path, its hash, and its name among the others."""

    set: str
    path: str
    sha256: str
    questions: tuple[GoldQuestion, ...] = field(repr=False)


def read_questions(paths: Sequence[Path]) -> list[QuestionFile]:
    """Read JSON Lines files, plain or packed (.gz, .bz2); also the CRAG benchmark's, whose questions have pages.

    Raises:
        UsageError: a file or a line of it cannot be used, or nothing is asked; names file and line.
    """
    return [_read(path, name) for path, name in zip(paths, _names(paths), strict=True)]


def sample(questions: Sequence[GoldQuestion], limit: int | None, *, seed: int) -> list[GoldQuestion]:
    """Return at most `limit` questions of each file, sampled by the seed, in the files' order."""
    chosen: list[GoldQuestion] = []
    for name in dict.fromkeys(question.set for question in questions):
        candidates = [question for question in questions if question.set == name]
        size = len(candidates) if limit is None else min(limit, len(candidates))
        places = sorted(random.Random(seed).sample(range(len(candidates)), size))  # noqa: S311 - a sample, no secret
        chosen += [candidates[place] for place in places]
    return chosen


async def require_gold(collection: Collection, questions: Sequence[GoldQuestion]) -> str | None:
    """Return a warning where some gold ids are not in the collection; None if all are.

    Raises:
        UsageError: no gold id at all is there: these questions belong to other documents.
    """
    gold_ids = {gold for question in questions for gold in question.gold}
    if not gold_ids:
        return "No question names its gold_ids: what was found and cited cannot be judged."
    missing = sorted(gold_ids - await collection.known_ids(sorted(gold_ids)))
    if len(missing) == len(gold_ids):
        raise UsageError(
            f"None of the {len(gold_ids)} gold_ids of the questions is in the collection (the first: {missing[0]!r}). "
            "`sleuth ingest` the corpus that they belong to, or choose its SLEUTH_COLLECTION."
        )
    if not missing:
        return None
    touched = sum(bool(set(question.gold) & set(missing)) for question in questions)
    return (
        f"{len(missing)} of {len(gold_ids)} gold_ids, of {touched} questions, are not in the collection (the first: "
        f"{missing[0]!r}) and count as not found."
    )


def _names(paths: Sequence[Path]) -> list[str]:
    """Return each file's name without suffixes, prefixed by its folder's name if two files have the same name."""
    stems = [path.name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".jsonl") for path in paths]
    if len(set(stems)) < len(stems):
        stems = [path.resolve().parent.name for path in paths]
    if len(set(stems)) < len(stems):
        raise UsageError("Question files must differ in their names or in those of their folders.")
    return stems


def _read(path: Path, name: str) -> QuestionFile:
    questions: list[GoldQuestion] = []
    numbers: dict[str, int] = {}
    for number, line in read_lines_as(_Line, path, form="Each line is one JSON object."):
        question = _question(line, name, number)
        if (before := numbers.setdefault(question.id, number)) != number:
            raise UsageError(f"{path}, line {number}: the id {question.id!r} is already used on line {before}.")
        questions.append(question)
    if not questions:
        raise UsageError(f'{path} holds no question. Each line must be {{"question": "…", "answer": "…", …}}.')
    hash = sha256(path.read_bytes()).hexdigest()
    return QuestionFile(set=name, path=str(path), sha256=hash, questions=tuple(questions))


def _question(line: _Line, set: str, number: int) -> GoldQuestion:
    id = line.id or str(number)
    answers = [line.answer, *line.answer_aliases, *([INVALID] if line.type == FALSE_PREMISE else [])]
    return GoldQuestion(
        set=set,
        id=id,
        question=line.question,
        answers=tuple(dict.fromkeys(answer for answer in answers if answer is not None)),
        gold=tuple(dict.fromkeys(line.gold_ids)),
        type=line.type or "",
        decomposition=tuple(line.decomposition),
        asked_at=line.asked_at,
        pages=tuple(line.search_results),
        row=line.model_dump(exclude={"search_results"}) | {"id": id},
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One line of every table."""

    name: str
    method: str
    profile: Profile = "default"
    values: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the system with every setting as it holds, defaults too."""
        settings = configure(method(self.method), self.values, self.profile).model_dump(mode="json")
        return {**asdict(self), "settings": settings}


def systems(
    methods: Sequence[str],
    *,
    ablations: Sequence[str] = (),
    ladders: Sequence[str] = (),
    profiles: Sequence[Profile] = ("default",),
    values: Mapping[str, str] | None = None,
) -> list[System]:
    """Return the systems in the order of the methods: each in each profile, its ablations and the stages of its ladder.

    Args:
        methods: names; those of `ablations` and `ladders` are added if they are missing.
        ablations: the methods whose parts are switched off, one by one.
        ladders: the methods that are run as far as they were built, step by step.
        profiles: for each of them a line.
        values: settings for every method that has them; `METHOD.KEY` for one method alone.

    Raises:
        UnknownName: no such method, or no method has such a setting.
        UsageError: a value that a setting cannot have, or a ladder that a method has not.
    """
    lines: list[System] = []
    chosen, values = list(dict.fromkeys([*methods, *ablations, *ladders])), values or {}
    _require_used(values, chosen)
    for name in chosen:
        variants: dict[str, dict[str, Any]] = {"": {}}
        if name in ablations:
            variants |= {f" {part}": changed for part, changed in method(name).ablations().items()}
        if name in ladders:
            if not (stages := method(name).stages()):
                raise UsageError(f"{name} has no ladder: only methods with a cumulative ablation have one.")
            variants |= {f" {stage}": changed for stage, changed in stages.items()}
        for profile in profiles:
            title = name if profile == "default" else f"{name} {profile}"
            lines += [
                System(name=f"{title}{suffix}", method=name, profile=profile, values=_values_of(name, values) | changed)
                for suffix, changed in variants.items()
            ]
    for system in lines:
        configure(method(system.method), system.values, system.profile)
    return lines


def _values_of(name: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the values for a method; those with its name before them win."""
    settings, prefix = method(name).settings.model_fields, f"{name}."
    general = {key: value for key, value in values.items() if key in settings}
    return general | {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _require_used(values: Mapping[str, str], methods: Sequence[str]) -> None:
    names = sorted({key for name in methods for key in method(name).settings.model_fields})
    for key in values:
        owner, dot, _ = key.partition(".")
        if dot and owner not in methods:
            raise UsageError(f"--set {key}: {owner} is not among the methods evaluated: {', '.join(methods)}.")
        if not dot and key not in names:
            raise UnknownName("setting of these methods", key, names, f"There are: {', '.join(names)}.")
