"""The folder of docs/tutorials/own-folder.md and the questions about it."""

import json
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from sleuth.tools.documents.loading import load

BOATYARD = Path(__file__).parents[2] / "examples" / "boatyard"
QUESTIONS: list[dict[str, Any]] = [json.loads(line) for line in (BOATYARD / "questions.jsonl").open(encoding="utf-8")]
NOT_VERBATIM = ("yes_no", "count")


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The texts of the files by their names."""
    folder = tmp_path_factory.mktemp("boatyard")
    run_path(str(BOATYARD / "make.py"))["main"](folder)
    return {path.name: load(path).text for path in folder.iterdir()}


def test_boatyard_has_ten_files_of_at_least_three_types(texts: dict[str, str]) -> None:
    assert len(texts) == 10
    assert len({Path(name).suffix for name in texts}) >= 3


@pytest.mark.parametrize("question", [each for each in QUESTIONS if each["answer"]], ids=lambda each: each["question"])
def test_last_file_of_a_question_contains_its_answer(texts: dict[str, str], question: dict[str, Any]) -> None:
    assert set(question["gold_ids"]) <= texts.keys()
    if question["type"] not in NOT_VERBATIM:
        assert question["answer"] in texts[question["gold_ids"][-1]]
    if question["type"] == "two_hop":
        assert question["answer"] not in texts[question["gold_ids"][0]]
