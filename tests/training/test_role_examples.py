import importlib
import json
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from json_lines import write_rows

from sleuth.agents import roles
from sleuth.agents.role import Role
from sleuth.tools.errors import UnknownName
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Hit, Passage
from training.questions import TrainingSet, passage_of, read
from training.roles.data.examples import (
    METHODS,
    SimulatedRun,
    plan_runs,
    simulate_run,
)
from training.roles.data.facts import PassageFacts
from training.roles.data.teacher import Example

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


@dataclass
class All:
    """A retriever that finds everything."""

    known: TrainingSet

    async def search(self, query: Query) -> list[Hit]:
        found = [passage_of(id, *titled) for id, titled in self.known.passages.items()]
        return [Hit(passage=passage, score=1.0, rank=at) for at, passage in enumerate(found[: query.k], start=1)]


@pytest.fixture
def known(tmp_path: Path) -> TrainingSet:
    hops = write_rows(tmp_path / "many" / "train.jsonl", HOPS)
    return read([hops, write_rows(tmp_path / "one" / "dev.jsonl", {**SINGLE, "paragraph": BRASK["text"]})])


def test_files_become_one_corpus_and_questions_with_their_gold(known: TrainingSet) -> None:
    assert [line["title"] for line in known.corpus()] == ["Rain", "Ferry", "Oda Brask"]
    many, one = known.questions
    assert many["gold_ids"] == ["p1", "p2"]
    assert [step["gold_id"] for step in many["decomposition"]] == ["p1", "p2"]
    assert (one["set"], one["gold_ids"]) == ("one/dev", ["p2"])


def by_prompt(examples: list[Example]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for example in examples:
        plain = example.role in ("evaluator", "verifier") or example.prompt == "planner/begin"
        found.setdefault(example.prompt, []).append(example.reply if plain else json.loads(example.reply))
    return found


def example(prompt: str, text: str, reply: str = "x") -> Example:
    sent = ({"role": "user", "content": text},)
    return Example(
        set="s", hops=2, question="1", role=prompt.split("/", maxsplit=1)[0], prompt=prompt, messages=sent, reply=reply
    )


async def played(
    known: TrainingSet, method: str, seed: int = 0, at: int = 0, *, unaided: bool = False, **values: str
) -> list[Example]:
    """Return the examples from a run on one of the questions."""
    each = SimulatedRun(row=known.questions[at], method=method, seed=seed, values=values, unaided=unaided)
    return await simulate_run(each, known, All(known), PassageFacts({}))


@pytest.mark.parametrize("seed", range(2))
async def test_every_reply_is_right_however_the_run_goes(known: TrainingSet, seed: int) -> None:
    learned = by_prompt(await played(known, "par-rag", seed))
    first, second = learned["planner/plan"][0]["steps"]
    assert (first["question"], second["needs"]) == ("For whom was the ferry built?", [1])
    said = {draft["answer"] for draft in learned["drafter/draft"]}
    assert said <= {"Oda Brask", "Kestrow"}


@pytest.mark.parametrize("method", METHODS)
async def test_every_reply_is_one_that_its_schema_lets_a_guided_model_write(known: TrainingSet, method: str) -> None:
    schemas = {role.prompt: role.schema() for role in all_roles()}
    for seed in range(3):
        for example in await played(known, method, seed):
            schema = schemas[example.prompt]
            if schema is not None:
                jsonschema.validate(json.loads(example.reply), schema)
                orders = [list(shape["properties"]) for shape in schema.get("anyOf", [schema])]
                assert list(json.loads(example.reply)) in orders


def test_only_named_methods_run_with_their_own_settings(known: TrainingSet) -> None:
    runs = plan_runs(known, seed=0, limit=None, methods=["ras"], values={"triples": "false"})
    assert {(each.method, each.values["triples"]) for each in runs} == {("ras", "false")}
    with pytest.raises(UnknownName, match="There is no method to play 'agent'"):
        plan_runs(known, seed=0, limit=None, methods=["agent"])
    with pytest.raises(UnknownName, match="setting of par-rag 'triples'"):
        plan_runs(known, seed=0, limit=None, methods=["par-rag"], values={"triples": "false"})


def all_roles() -> Iterator[Role[Any, Any]]:
    for module in pkgutil.walk_packages(roles.__path__, "sleuth.agents.roles."):
        yield from (each for each in vars(importlib.import_module(module.name)).values() if isinstance(each, Role))


async def test_quotes_are_contained_in_the_prompt(known: TrainingSet) -> None:
    examples = [
        example
        for seed in range(4)
        for example in await played(known, "plain-rag", seed)
        if example.prompt == "reader/read"
    ]
    quotes = [(each["quote"], example) for example in examples for each in json.loads(example.reply)["citations"]]
    assert quotes
    assert all(quote in example.messages[-1]["content"] for quote, example in quotes)


def passage(id: str, text: str = "?") -> Passage:
    return passage_of(id, id, text)


@pytest.fixture
def silent(known: TrainingSet, monkeypatch: pytest.MonkeyPatch) -> TrainingSet:
    """The passage of the second question, found without what it is asked for."""
    monkeypatch.setattr("training.roles.data.source_order.SILENT", 1.0)
    title, text = known.passages["p2"]
    known.passages["p2"] = (title, f"{text} She built boats.")
    return known


async def test_where_the_passage_is_silent_nothing_is_answered(silent: TrainingSet) -> None:
    (learned,) = await played(silent, "plain-rag", at=1)
    assert json.loads(learned.reply) == {"answerable": False, "answer": "", "citations": []}
    assert "She built boats." in str(learned.messages)


async def test_draft_without_evidence_is_a_guess_that_fails_review(silent: TrainingSet) -> None:
    learned = by_prompt(await played(silent, "par-rag", at=1))
    assert "drafter/draft" not in learned
    assert {review["status"] for review in learned["reviewer/review"]} == {"UNCONFIDENT"}
