import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sleuth.studio.training.roles.examples import Play, chosen, extractions, play, plays
from sleuth.studio.training.roles.questions import TrainingSet, read
from sleuth.studio.training.roles.teacher import Example, Withholding
from sleuth.tools.documents import Hit, Passage
from sleuth.tools.errors import UsageError
from sleuth.tools.retriever import Query

FERRY = {"title": "Ferry", "text": "The ferry was built for Oda Brask.", "is_supporting": True}
BRASK = {"title": "Oda Brask", "text": "Oda Brask was born in Kestrow.", "is_supporting": True}
RAIN = {"title": "Rain", "text": "Rain falls.", "is_supporting": False}
HOPS = {
    "id": "1",
    "question": "Where was the one born for whom the ferry was built?",
    "answer": "Kestrow",
    "paragraphs": [RAIN, FERRY, BRASK],
    "decomposition": [
        {"question": "For whom was the ferry built?", "answer": "Oda Brask", "paragraph": 1},
        {"question": "Where was #1 born?", "answer": "Kestrow", "paragraph": 2},
    ],
}
SINGLE = {"id": "2", "question": "Where was Oda Brask born?", "answer": "Kestrow", "title": "Oda Brask"}


def written(file: Path, *lines: object) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("\n".join(map(json.dumps, lines)))
    return file


@dataclass
class All:
    """A retriever that finds everything."""

    known: TrainingSet
    asked: list[Query] = field(default_factory=list)

    async def search(self, query: Query) -> list[Hit]:
        self.asked.append(query)
        found = [
            Passage(id=id, document_id=id, title=title, text=text, start=0, end=len(text))
            for id, (title, text) in self.known.passages.items()
        ]
        return [Hit(passage=passage, score=1.0, rank=at) for at, passage in enumerate(found[: query.k], start=1)]


@pytest.fixture
def known(tmp_path: Path) -> TrainingSet:
    hops = written(tmp_path / "many" / "train.jsonl", HOPS)
    return read([hops, written(tmp_path / "one" / "dev.jsonl", {**SINGLE, "paragraph": BRASK["text"]})])


def test_files_become_one_corpus_and_questions_with_their_gold(known: TrainingSet) -> None:
    assert [line["title"] for line in known.corpus()] == ["Rain", "Ferry", "Oda Brask"]
    many, one = known.questions
    assert many["gold_ids"] == ["p1", "p2"]
    assert [step["gold_id"] for step in many["decomposition"]] == ["p1", "p2"]
    assert (one["set"], one["gold_ids"]) == ("one/dev", ["p2"])


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"train\.jsonl, line 1 is no training question"):
        read([written(tmp_path / "train.jsonl", {"id": "1", "question": "?"})])


def by_prompt(examples: list[Example]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for example in examples:
        found.setdefault(example.prompt, []).append(json.loads(example.reply))
    return found


@pytest.mark.parametrize("seed", range(2))
async def test_every_reply_is_right_however_the_run_goes(known: TrainingSet, seed: int) -> None:
    each = Play(row=known.questions[0], method="par-rag", seed=seed)
    learned = by_prompt(await play(each, known, All(known)))
    first, second = learned["planner/plan"][0]["steps"]
    assert (first["question"], second["needs"]) == ("For whom was the ferry built?", [1])
    said = {draft["answer"] for draft in learned["drafter/draft"]}
    assert said <= {"Oda Brask", "Kestrow", ""}


async def test_some_students_err_so_that_reviews_have_something_to_mend(known: TrainingSet) -> None:
    reviews = [
        review["status"]
        for seed in range(8)
        for review in by_prompt(
            await play(Play(row=known.questions[0], method="par-rag", seed=seed), known, All(known))
        ).get("reviewer/review", [])
    ]
    assert "PASS" in reviews
    assert "REVISED" in reviews


async def test_what_is_withheld_is_not_found_and_others_take_its_place(known: TrainingSet) -> None:
    found = await Withholding(All(known), ["p1"]).search(Query(text="?", k=2))
    assert [hit.passage.id for hit in found] == ["p0", "p2"]


async def test_steps_that_are_only_derived_teach_no_planning(known: TrainingSet) -> None:
    row = {**known.questions[0], "decomposition": []}
    learned = await play(Play(row=row, method="par-rag", seed=0), known, All(known))
    assert "planner" not in {example.role for example in learned}


def test_a_play_errs_as_its_place_says(known: TrainingSet) -> None:
    turns = plays(known, seed=3, limit=None)
    assert len({(turn.row["id"], turn.method) for turn in turns}) == len(turns) == 10
    assert turns[0].dice.random() == plays(known, seed=3, limit=1)[0].dice.random()


def test_no_more_of_a_prompt_than_wanted_none_twice_none_too_long() -> None:
    def example(prompt: str, text: str) -> Example:
        return Example(question="1", role="r", prompt=prompt, messages=({"role": "user", "content": text},), reply="x")

    found = [example("a", "one"), example("a", "one"), example("a", "two"), example("a", "three"), example("b", "one")]
    kept = chosen([*found, example("b", "long " * 9000)], per_prompt=2, seed=0)
    assert [each.prompt for each in kept] == ["a", "a", "b"]
    assert len({str(each) for each in kept}) == 3


def test_the_extractor_learns_from_triples_that_are_known(tmp_path: Path) -> None:
    line = {
        "title": "Ferry",
        "text": "The ferry was built for Oda Brask.",
        "triples": [["ferry", "built for", "Oda Brask"]],
    }
    [example] = extractions([written(tmp_path / "triples.jsonl", line)])
    assert json.loads(example.reply) == {
        "triples": [{"subject": "ferry", "predicate": "built for", "object": "Oda Brask"}]
    }
    assert "Oda Brask" in example.messages[-1]["content"]
