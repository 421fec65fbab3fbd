"""Files of a list are read ahead by several workers and returned in order."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.documents.file_list import Item, list_files
from sleuth.tools.documents.loading import FileReader, LoadedDocument
from sleuth.tools.documents.parallel_reading import LocalWorkers, default_workers, read_ahead
from sleuth.tools.documents.worker import Worker, WorkerError
from sleuth.tools.errors import DocumentError, StoreError


def listed(folder: Path, names: list[str]) -> list[Item]:
    for name in names:
        (folder / name).write_text(f"The text of {name}.")
    return list_files([folder / name for name in names])[0]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_files_are_returned_in_order(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"{at:02}.txt" for at in range(20)]
    files, pool, really_read = listed(tmp_path, names), LocalWorkers(workers), FileReader.read
    running, counts, turn = set[str](), set[int](), threading.Lock()

    def read(reader: FileReader, path: Path, member: str = "") -> LoadedDocument:
        with turn:
            running.add(path.name)
            counts.add(len(running))
        time.sleep(0.2 if path.name == "00.txt" else 0.01)
        with turn:
            running.remove(path.name)
        if path.name == "03.txt":
            raise DocumentError(f"{path.name}: is bad.")
        return really_read(reader, path, member)

    monkeypatch.setattr(FileReader, "read", read)
    documents = [document for _, document in read_ahead(files, pool.submit, workers)]
    found = [each.text if isinstance(each, LoadedDocument) else str(each) for each in documents]
    pool.close()
    assert found == ["03.txt: is bad." if name == "03.txt" else f"The text of {name}." for name in names]
    assert max(counts) <= workers
    assert max(counts) > 1 or workers == 1


def test_closed_workers_raise_store_error(tmp_path: Path) -> None:
    workers = LocalWorkers(1)
    reading = read_ahead(listed(tmp_path, [f"{at}.txt" for at in range(9)]), workers.submit, 1)
    _, first = next(reading)
    workers.close()
    assert isinstance(first, LoadedDocument) and first.text == "The text of 0.txt."
    with pytest.raises(StoreError, match="closed"):
        list(reading)


def test_close_cancels_analysis_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, ends, workers = threading.Event(), threading.Event(), LocalWorkers(1)

    def call(_worker: Worker, given: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        begins.set()
        assert ends.wait(seconds)
        return given

    monkeypatch.setattr(Worker, "call", call)
    first, *others = [workers.submit_analysis({"kind": kind}) for kind in ("terms", "names", "terms")]
    assert begins.wait(10)
    workers.close()
    ends.set()
    assert first.result(10)
    assert all(each.cancelled() for each in others)


def test_default_is_half_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    for processors, workers in ((1, 1), (2, 1), (8, 4), (64, 8)):
        monkeypatch.setattr("os.sched_getaffinity", lambda _process, count=processors: set(range(count)))
        assert default_workers() == workers


def test_failed_analysis_has_an_empty_result(monkeypatch: pytest.MonkeyPatch) -> None:
    def call(_worker: Worker, _given: dict[str, Any], *, seconds: float) -> dict[str, Any]:
        raise WorkerError(f"takes more than {seconds} s", "Split it.")

    monkeypatch.setattr(Worker, "call", call)
    workers = LocalWorkers(1)
    assert workers.submit_analysis({"kind": "terms"}).result(10) == {}
    workers.close()
