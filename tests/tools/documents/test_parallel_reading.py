"""Files of a list are read ahead by several workers and returned in order."""

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.documents.file_list import Item, list_files
from sleuth.tools.documents.loading import FileReader, LoadedDocument
from sleuth.tools.documents.parallel_reading import LocalWorkers, default_workers, read_ahead
from sleuth.tools.documents.worker import Worker
from sleuth.tools.errors import DocumentError, StoreError


class Reader(FileReader):
    """Waits for each file that `slow` names, refuses those that `bad` names, and counts."""

    running = most = 0
    turn = threading.Lock()

    def __init__(self, slow: str = "", bad: str = "") -> None:
        super().__init__()
        self._slow, self._bad = slow, bad

    def read(self, path: Path, member: str = "") -> LoadedDocument:
        with Reader.turn:
            Reader.running += 1
            Reader.most = max(Reader.most, Reader.running)
        time.sleep(0.2 if path.name == self._slow else 0.01)
        with Reader.turn:
            Reader.running -= 1
        if path.name == self._bad:
            raise DocumentError(f"{path.name}: is bad.")
        return super().read(path, member)


def listed(folder: Path, names: list[str]) -> list[Item]:
    for name in names:
        (folder / name).write_text(f"The text of {name}.")
    return list_files([folder / name for name in names])[0]


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_files_are_returned_in_order(tmp_path: Path, workers: int) -> None:
    names = [f"{at:02}.txt" for at in range(20)]
    files, read = listed(tmp_path, names), LocalWorkers(lambda: Reader(slow="00.txt", bad="03.txt"), workers)
    Reader.most = 0
    documents = [document for _, document in read_ahead(files, read.submit, workers)]
    found = [each.text if isinstance(each, LoadedDocument) else str(each) for each in documents]
    read.close()
    assert found == ["03.txt: is bad." if name == "03.txt" else f"The text of {name}." for name in names]
    assert Reader.most <= workers
    assert Reader.most > 1 or workers == 1


def test_closed_workers_raise_store_error(tmp_path: Path) -> None:
    workers = LocalWorkers(Reader, 1)
    reading = read_ahead(listed(tmp_path, [f"{at}.txt" for at in range(9)]), workers.submit, 1)
    _, first = next(reading)
    workers.close()
    assert isinstance(first, LoadedDocument) and first.text == "The text of 0.txt."
    with pytest.raises(StoreError, match="closed"):
        list(reading)


def test_close_cancels_analysis_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, ends, workers = threading.Event(), threading.Event(), LocalWorkers(FileReader, 1)

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
