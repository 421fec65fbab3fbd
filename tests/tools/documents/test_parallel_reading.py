"""Files of a list are read ahead by several workers and returned in order."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from sleuth.tools.documents.file_list import write_worklist
from sleuth.tools.documents.loading import FileReader, LoadedDocument
from sleuth.tools.documents.parallel_reading import LocalWorkers, ParallelReader, default_workers
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


def listed(folder: Path, names: list[str]) -> Path:
    (folder / "in").mkdir(exist_ok=True)
    for name in names:
        (folder / "in" / name).write_text(f"The text of {name}.")
    write_worklist(folder / "list.jsonl", [folder / "in" / name for name in names])
    return folder / "list.jsonl"


def read_all(reader: ParallelReader, worklist: Path, offset: int = 0) -> list[str]:
    titles = []
    while (reading := reader.next(worklist, offset)) is not None:
        try:
            titles.append(reading.result().text)
        except DocumentError as error:
            titles.append(str(error))
        offset = reading.item.next_offset
    return titles


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_files_are_returned_in_order(tmp_path: Path, workers: int) -> None:
    names = [f"{at:02}.txt" for at in range(20)]
    worklist = listed(tmp_path, names)
    Reader.most = 0
    reader = ParallelReader(LocalWorkers(lambda: Reader(slow="00.txt", bad="03.txt"), workers))
    found = read_all(reader, worklist)
    reader.close()
    assert found == ["03.txt: is bad." if name == "03.txt" else f"The text of {name}." for name in names]
    assert Reader.most <= workers
    assert Reader.most > 1 or workers == 1


def test_place_may_be_repeated_or_skipped(tmp_path: Path) -> None:
    worklist = listed(tmp_path, [f"{at}.txt" for at in range(9)])
    reader = ParallelReader(LocalWorkers(Reader, 2))
    first = reader.next(worklist, 0)
    assert first and reader.next(worklist, 0) is first
    second = reader.next(worklist, first.item.next_offset)
    assert second
    assert read_all(reader, worklist, second.item.next_offset) == [f"The text of {at}.txt." for at in range(2, 9)]
    assert read_all(reader, worklist) == [f"The text of {at}.txt." for at in range(9)]
    reader.close()


def test_list_that_was_written_again_is_read_again(tmp_path: Path) -> None:
    reader = ParallelReader(LocalWorkers(Reader, 2))
    worklist = listed(tmp_path, ["a.txt", "b.txt"])
    assert reader.next(worklist, 0)
    assert read_all(reader, listed(tmp_path, ["c.txt", "d.txt"])) == ["The text of c.txt.", "The text of d.txt."]
    reader.close()


def test_closed_reader_raises_store_error(tmp_path: Path) -> None:
    worklist = listed(tmp_path, [f"{at}.txt" for at in range(9)])
    reader = ParallelReader(LocalWorkers(lambda: Reader(slow="0.txt"), 1))
    readings = [reader.next(worklist, 0)]
    readings.append(reader._pending[1])
    threading.Timer(0.05, reader.close).start()
    assert readings[0] and readings[1]
    assert readings[0].result().text == "The text of 0.txt."
    with pytest.raises(StoreError, match="closed"):
        readings[1].result()


class Analysis:
    """Replaces the call of a worker process: records the kinds of calls, of which the first waits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.kinds: list[str] = []
        self.begins, self.ends = threading.Event(), threading.Event()
        monkeypatch.setattr(Worker, "call", lambda _worker, given, *, seconds: self._call(given, seconds))

    def start(self, workers: LocalWorkers) -> "list[Future[dict[str, Any]]]":
        """Start three calls while the first is in progress."""
        calls = [workers.submit_analysis({"kind": "terms"})]
        assert self.begins.wait(10)
        return calls + [workers.submit_analysis({"kind": kind}) for kind in ("names", "languages")]

    def _call(self, given: dict[str, Any], _seconds: float) -> dict[str, Any]:
        self.kinds.append(given["kind"])
        self.begins.set()
        assert self.ends.wait(10)
        return given


def test_languages_are_detected_before_analysis_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis, workers = Analysis(monkeypatch), LocalWorkers(FileReader, 1)
    calls = analysis.start(workers)
    analysis.ends.set()
    assert [call.result(10)["kind"] for call in calls] == ["terms", "names", "languages"]
    assert analysis.kinds == ["terms", "languages", "names"]
    workers.close()


def test_close_cancels_analysis_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    analysis, workers = Analysis(monkeypatch), LocalWorkers(FileReader, 1)
    first, *others = analysis.start(workers)
    workers.close()
    analysis.ends.set()
    assert first.result(10)
    assert all(call.cancelled() for call in others)


@pytest.mark.parametrize(("processors", "workers"), [(1, 1), (2, 1), (8, 4), (64, 8)])
def test_default_is_half_the_processors(monkeypatch: pytest.MonkeyPatch, processors: int, workers: int) -> None:
    count: Callable[[int], set[int]] = lambda _process: set(range(processors))  # noqa: E731
    monkeypatch.setattr("os.sched_getaffinity", count)
    assert default_workers() == workers
