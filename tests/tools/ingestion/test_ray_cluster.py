"""Files are read, and passages analyzed and embedded, by tasks of a Ray cluster as in this process."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from fake_ray import FakeRay, RayError
from hashing_embedder import HashingEmbedder

from sleuth.tools.collection.index_set import PassageAnalyzer
from sleuth.tools.documents.file_list import Item
from sleuth.tools.documents.loading import FileReader
from sleuth.tools.documents.resource_limits import BOUNDS
from sleuth.tools.errors import DocumentError, StoreError
from sleuth.tools.ingestion import ray_cluster
from sleuth.tools.ingestion.ingestion import make_passage_embedder, make_workers
from sleuth.tools.ingestion.ray_cluster import RayEmbedder, RayWorkers
from sleuth.tools.search.vectors.embedder import EndpointEmbedder, LocalEmbedder, NoEmbedder
from sleuth.tools.settings import Settings
from sleuth.tools.text.language import find_terms
from sleuth.tools.types import Passage


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    cluster = FakeRay()
    monkeypatch.setattr(ray_cluster, "connect", cluster.connect)
    return cluster


def workers() -> RayWorkers:
    return RayWorkers("there:1", loaders={}, bounds=BOUNDS)


def item(path: Path, member: str = "") -> Item:
    return Item(path=path, document_id=path.name, member=member)


def test_file_is_read_from_its_bytes_as_it_is_read_here(ray: FakeRay, tmp_path: Path) -> None:
    path = tmp_path / "the-old_mill.html"
    path.write_text("<p>Of mills.")
    os.utime(path, (1_000_000_000, 1_000_000_000))
    pool = workers()
    found = pool.submit(item(path)).result()
    assert found == FileReader().read(path)
    assert (found.title, found.date) == ("The old mill", "2001-09-09")
    assert (ray.tasks, ray.options) == (["read_file"], {"num_cpus": 1, "max_retries": ray_cluster.RETRIES})
    pool.close()


def test_archive_is_sent_once_for_its_files(ray: FakeRay, tmp_path: Path) -> None:
    path = tmp_path / "mills.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a.md", "b.md", "c.md"):
            archive.writestr(name, f"# {name}\n\nOf mills.")
    pool = workers()
    titles = [pool.submit(item(path, name)).result().title for name in ("a.md", "b.md", "c.md")]
    assert titles == ["a.md", "b.md", "c.md"]
    assert (len(ray.tasks), len(ray.stored)) == (3, 1)


@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", b""), ("b.bin", b"x"), ("c.pdf", b"no pdf"), ("gone.txt", None)]
)
@pytest.mark.usefixtures("ray")
def test_reason_names_the_file_and_not_its_copy(tmp_path: Path, name: str, content: bytes | None) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DocumentError) as there:
        workers().submit(item(path)).result()
    with pytest.raises(DocumentError) as here:
        FileReader().read(path)
    assert str(there.value) == str(here.value)
    assert str(there.value).startswith(f"{path}: ")


def test_passages_are_analyzed_by_tasks(ray: FakeRay) -> None:
    given = [
        Passage(id=f"p{at}", document_id="a.md", title="Mills", text=f"Ada met {at} mills. " * 90, start=0, end=9)
        for at in range(70)
    ]
    analyzer = PassageAnalyzer()
    analyzer.start(workers().submit_analysis, given)
    assert analyzer.terms(given) == find_terms(given)
    assert ray.tasks == ["analyze"] * 3


def test_failed_cluster_is_an_error_with_advice(ray: FakeRay, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Of mills.")
    ray.failure = RayError("No module named 'sleuth'")
    advice = "The Ray cluster failed: No module named 'sleuth'. Check that all its machines"
    with pytest.raises(StoreError, match=advice):
        workers().submit(item(tmp_path / "a.txt")).result()
    embedder = RayEmbedder("there:1", HashingEmbedder())
    with pytest.raises(StoreError, match=advice):
        embedder.embed_passages(["Of mills."])


def test_passages_are_embedded_in_parts_in_order(ray: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_cluster, "_worker_embedder", lambda *_: HashingEmbedder())
    ray.processors, here = 3, HashingEmbedder()
    embedder = RayEmbedder("there:1", here)
    texts = [f"Passage {at} of mills" for at in range(100)]
    assert np.array_equal(embedder.embed_passages(texts), HashingEmbedder().embed_passages(texts))
    assert ray.tasks == ["embed"] * 3
    assert embedder.name == here.name
    assert np.array_equal(embedder.embed_query("mills"), here.embed_query("mills"))


def test_setting_selects_the_cluster_and_connects_to_nothing(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, ray="192.0.2.1:6379")
    assert isinstance(make_workers(settings), RayWorkers)
    assert isinstance(make_passage_embedder(settings), RayEmbedder)
    for embedder in ("none", "http://127.0.0.1:1/v1#m"):
        assert not isinstance(make_passage_embedder(settings.model_copy(update={"embedder": embedder})), RayEmbedder)
    assert isinstance(make_passage_embedder(Settings(home=tmp_path, embedder="none")), NoEmbedder)
    assert isinstance(make_passage_embedder(Settings(home=tmp_path)), LocalEmbedder)
    assert isinstance(make_passage_embedder(Settings(embedder="https://host/v1#model")), EndpointEmbedder)
