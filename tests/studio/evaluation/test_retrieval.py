import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from entries import entry
from json_lines import write_questions

from sleuth.studio.evaluation.evaluate import Evaluation, evaluate
from sleuth.tools.collection.collection import Collection
from sleuth.tools.errors import StoreBusy, UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

FISH = {"id": "fish", "question": "Which fish swims in the lake?", "gold_ids": ["lake"], "type": "one"}
BOTH = {"id": "both", "question": "Which bird sits on the hill?", "gold_ids": ["hill", "moon"], "type": "two"}


@pytest.fixture
async def shelf(settings: Settings) -> Settings:
    """A collection of a lake, a hill, and a document of each letter."""
    async with await Collection.open(settings) as library:
        texts = {"lake": "A pike is the fish that swims in the lake.", "hill": "A lark is the bird on the hill."}
        texts |= {letter: f"The letter {letter} and no more." for letter in "abcdefgh"}
        await Ingestion(library).put([entry(id, text) for id, text in texts.items()])
    return settings


async def judge(settings: Settings, questions: Path, out: Path, **more: Any) -> dict[str, Any]:
    wanted = Evaluation(paths=(questions,), out=out, **{"modes": ("keyword",), **more})
    return await evaluate(settings, wanted, on_progress=lambda what, done, total: None)


async def test_search_is_judged_in_all_and_by_group(shelf: Settings, tmp_path: Path) -> None:
    report = await judge(shelf, write_questions(tmp_path, FISH, BOTH), tmp_path / "out")
    summary = report["retrieval"]["summary"]
    assert summary["all"]["systems"]["keyword"]["recall@5"]["mean"] == 0.75
    assert summary["by"]["type"]["two"]["systems"]["keyword"]["recall@5"]["mean"] == 0.5
    assert report["warnings"] == [
        "1 of 3 gold_ids, of 1 questions, are not in the collection (the first: 'moon') and count as not found."
    ]
    written = json.loads((tmp_path / "out" / "report.json").read_text())
    assert written == json.loads(json.dumps(report))
    assert "<td>75.0 (" in (tmp_path / "out" / "report.html").read_text()
    lines = [json.loads(line) for line in (tmp_path / "out" / "retrieval.jsonl").read_text().splitlines()]
    assert [(line["mode"], line["question"]) for line in lines] == [
        ("keyword", "questions/fish"),
        ("keyword", "questions/both"),
    ]


async def test_questions_of_other_documents_are_refused(shelf: Settings, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="None of the 1 gold_ids"):
        await judge(
            shelf,
            write_questions(tmp_path, {"question": "Where?", "gold_ids": ["mars"]}),
            tmp_path / "out",
        )
    with pytest.raises(UsageError, match="none of the questions names its gold_ids"):
        await judge(shelf, write_questions(tmp_path, {"question": "Where?"}), tmp_path / "out")


async def test_folder_belongs_to_one_evaluation_of_the_same_documents(shelf: Settings, tmp_path: Path) -> None:
    questions, out = write_questions(tmp_path, FISH, BOTH), tmp_path / "out"
    first = await judge(shelf, questions, out, limit=1)
    again = await judge(shelf, questions, out, limit=1)
    assert again["retrieval"]["summary"] == first["retrieval"]["summary"]
    with pytest.raises(UsageError, match="differs in: limit, seed"):
        await judge(shelf, questions, out, seed=4)
    async with hold(out, "exclusive", command="sleuth eval"):
        with pytest.raises(StoreBusy, match="out is in use by `sleuth eval`"):
            await asyncio.wait_for(judge(shelf, questions, out, limit=1), 5)
    async with await Collection.open(shelf) as library:
        await Ingestion(library).put([entry("more", "Another text.")])
    with pytest.raises(UsageError, match="differs in: data"):
        await judge(shelf, questions, out, limit=1)
