"""The large checker reads alike on all processors; their sums differ in the last bits, which 8-bit inputs amplify."""

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
CLOSE = 0.15
"""Between processors with and without AMX, supports differ by 0.1 at most, and a span by a word at its end."""


def read_all(folder: Path) -> dict[str, tuple[str, float]]:
    """Read each question of `STORED` with its gold documents; return the answer, and the support of the stored one."""
    checker, readings = EvidenceChecker.load(folder), {}
    for line in (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        texts = {id: (EXAMPLES / "corpus" / id) for id in question["gold_ids"]}
        if texts and all(path.suffix == ".md" for path in texts.values()):
            passages = [Evidence(title=load(path).title, text=load(path).text[:1200]) for path in texts.values()]
            reading = checker.read(question["question"], passages)
            readings[question["id"]] = (reading.answer, reading.support_of(STORED[question["id"]][0]))
    return readings


@pytest.mark.nightly
async def test_large_checker_reads_what_it_read_elsewhere(tmp_path: Path) -> None:
    await install_reader(tmp_path, print)
    read = read_all(tmp_path / "reader")
    assert read.keys() == STORED.keys()
    others = {id: (answer, STORED[id][0]) for id, (answer, _) in read.items() if not STORED[id][0].startswith(answer)}
    assert {id: pair for id, pair in others.items() if not pair[0].startswith(pair[1])} == {}
    assert {id: support for id, (_, support) in read.items()} == pytest.approx(
        {id: support for id, (_, support) in STORED.items()}, abs=CLOSE
    )
