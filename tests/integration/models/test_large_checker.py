"""The large checker reads the same on every processor: its products are of whole numbers."""

import json
from pathlib import Path

import pytest

from sleuth.studio.model_server.reader import install_reader
from sleuth.tools.documents.loading import load
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.evidence_checker.inputs import Evidence

EXAMPLES = Path(__file__).parents[3] / "examples"
STORED = json.loads(Path(__file__).with_name("large_checker_readings.json").read_text(encoding="utf-8"))
"""The answer to each question whose documents are Markdown files, and the probability that it is right."""
CLOSE = 0.02


def read_all(folder: Path) -> dict[str, tuple[str, float]]:
    """Read each question of `STORED` with its gold documents."""
    checker, readings = EvidenceChecker.load(folder), {}
    for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        texts = {id: (EXAMPLES / "corpus" / id) for id in question["gold_ids"]}
        if texts and all(path.suffix == ".md" for path in texts.values()):
            passages = [Evidence(title=load(path).title, text=load(path).text[:1200]) for path in texts.values()]
            reading = checker.read(question["question"], passages)
            readings[question["id"]] = (reading.answer, round(reading.support_of(reading.answer), 3))
    return readings


@pytest.mark.nightly
async def test_large_checker_reads_what_it_read_elsewhere(tmp_path: Path) -> None:
    await install_reader(tmp_path, print)
    read = read_all(tmp_path / "reader")
    assert {id: answer for id, (answer, _) in read.items()} == {id: answer for id, (answer, _) in STORED.items()}
    assert {id: support for id, (_, support) in read.items()} == pytest.approx(
        {id: support for id, (_, support) in STORED.items()}, abs=CLOSE
    )
