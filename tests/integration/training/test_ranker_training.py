"""The training command, with the library that grows the trees."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sleuth.tools.search.ranking import load

ROOT = Path(__file__).parents[3]


def question(number: int) -> dict[str, object]:
    ferry = {"title": f"Ferry {number}", "text": f"It was built for Oda Brask{number}.", "is_supporting": True}
    person = {"title": f"Oda Brask{number}", "text": f"She was born in Kestrow{number}.", "is_supporting": True}
    fillers = [{"title": f"Report {number}-{at}", "text": f"The ferry was late, says {at}."} for at in range(12)]
    text = f"Where was the one born for whom Ferry {number} was built?"
    return {"id": str(number), "question": text, "answer": f"Kestrow{number}", "paragraphs": [ferry, person, *fillers]}


def trained(files: list[Path], out: Path) -> dict[str, object]:
    command = [sys.executable, "-m", "training.ranker", *map(str, files), "--out", str(out)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.mark.nightly
def test_the_same_files_make_the_same_usable_model(tmp_path: Path) -> None:
    files = []
    for name, start in (("a", 0), ("b", 100)):
        (tmp_path / name).mkdir()
        files.append(tmp_path / name / "train.jsonl")
        files[-1].write_text("\n".join(json.dumps(question(number)) for number in range(start, start + 30)))
    report = trained(files, tmp_path / "one.npz")
    trained(files, tmp_path / "two.npz")
    one, two = load(tmp_path / "one.npz"), load(tmp_path / "two.npz")
    assert one.value.tolist() == two.value.tolist()
    assert one.meta["questions"] == 60
    assert set(report["left_out"]) == set(report["cross_validated"]) == {"a/train", "b/train"}  # type: ignore[call-overload]
