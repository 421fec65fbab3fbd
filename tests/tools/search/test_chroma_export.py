"""Collections of other applications in Chroma, exported as a corpus."""

import json
from pathlib import Path

import chromadb
import pytest
from chromadb.config import Settings

from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.search.vectors.chroma_export import export_chroma

RECORDS = {
    "a": ("The light was lit.", {"source": "light.md", "author": "Ada", "page": 3}),
    "b": ("The mill ran.", {"title": "The mill", "tags": "water, grain"}),
    "c": ("Nothing about it.", None),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "chroma"
    client = chromadb.PersistentClient(str(folder), Settings(anonymized_telemetry=False))
    papers = client.create_collection("papers", embedding_function=None)
    for id_, (text, metadata) in RECORDS.items():
        papers.add(
            ids=[id_], embeddings=[[1.0, 0.0]], documents=[text], metadatas=None if metadata is None else [metadata]
        )
    client.close()
    return folder


def test_records_become_lines_of_a_corpus(place: Path, tmp_path: Path) -> None:
    file = export_chroma(place, None, tmp_path / "imports")
    rows = {row["id"]: row for row in map(json.loads, file.read_text(encoding="utf-8").splitlines())}
    assert rows == {
        "a": {"id": "a", "title": "light.md", "text": "The light was lit.", "author": "Ada", "page": 3},
        "b": {"id": "b", "title": "The mill", "text": "The mill ran.", "tags": "water, grain"},
        "c": {"id": "c", "title": "c", "text": "Nothing about it."},
    }
    assert [path.name for path in file.parent.iterdir()] == ["papers.jsonl"]


def test_unusable_places_and_names_are_refused(place: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no Chroma database.*chroma\.sqlite3"):
        export_chroma(tmp_path / "nowhere", None, tmp_path / "imports")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(UnknownName, match=r"paper.*papers"):
        export_chroma(place, "paper", tmp_path / "imports")
    client = chromadb.PersistentClient(str(place), Settings(anonymized_telemetry=False))
    client.create_collection("letters", embedding_function=None)
    client.close()
    with pytest.raises(UsageError, match=r"2 collections \(letters, papers\).*--chroma-collection"):
        export_chroma(place, None, tmp_path / "imports")
