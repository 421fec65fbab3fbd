"""The recipe of the evidence checker on a small part of the data: train, resume, export, measure."""

import json
from pathlib import Path

import pytest
import torch
import typer
from safetensors.torch import load_file
from training_data import DATA, some_of
from typer.testing import CliRunner

from sleuth.tools.errors import UsageError
from sleuth.tools.evidence_checker import Evidence, EvidenceChecker
from training.evidence_checker import check, export, train

pytestmark = [
    pytest.mark.integration,
    pytest.mark.faults,  # trains for some minutes
    pytest.mark.skipif(not (DATA / "train").is_dir(), reason="no training files next to the checkout"),
]
FERRY = Evidence(title="Ferry", text="The ferry was built by Oda Brask in 1911.")


def run(command: object, *arguments: object) -> dict[str, object]:
    app = typer.Typer()
    app.command()(command)  # type: ignore[type-var]  # a command's function
    done = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.stdout)
    return found


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / train.WEIGHTS)


def distance(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> float:
    return sum(float((one[name] - other[name]).norm()) for name in one)


def test_recipe_on_few_rows_gives_a_checker_that_reads(tmp_path: Path) -> None:
    data = some_of(tmp_path / "data", 100)
    command = (data, "--out", tmp_path / "run", "--tokens", 40_000, "--threads", 1)
    first = run(train.main, *command, "--minutes", 0)
    assert not first["finished"]
    begun = weights(tmp_path / "run")
    report = run(train.main, *command)
    assert report["finished"] and report["curve"]
    trained = weights(tmp_path / "run")
    run(train.main, data, "--out", tmp_path / "more", "--threads", 1, "--start", tmp_path / "run", "--minutes", 0)
    assert distance(weights(tmp_path / "more"), trained) < distance(begun, trained) / 2
    with pytest.raises(UsageError, match="name the folder of a finished training"):
        run(train.main, data, "--out", tmp_path / "none", "--start", tmp_path)
    exported = run(export.main, data, "--run", tmp_path / "run", "--out", tmp_path / "checker")
    assert 20e6 < float(str(exported["bytes"])) < 25e6
    measured = run(check.main, data, "--checker", tmp_path / "checker", "--set", "hotpot", "--set", "fever")
    assert measured["milliseconds_per_passage"]
    checker = EvidenceChecker.load(tmp_path / "checker")
    reading = checker.read("Who built the ferry?", [FERRY])
    assert FERRY.text[reading.spans[0].start : reading.spans[0].end] == reading.spans[0].text
    support = checker.check("The ferry was built in 1911.", [FERRY])
    assert support.supported + support.contradicted + support.not_mentioned == pytest.approx(1, abs=1e-5)
