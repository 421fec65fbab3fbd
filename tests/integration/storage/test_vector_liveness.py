"""Vectors of a killed process are probed before they are opened; those in use or closed are not."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from entries import entry
from hashing_embedder import HashingEmbedder

from sleuth.tools.search.vectors import chroma
from sleuth.tools.search.vectors.chroma_index import ChromaIndex

pytestmark = pytest.mark.integration

USER = """
import sys
from pathlib import Path
from sleuth.tools.search.vectors.chroma import checked_open

mark = checked_open(Path(sys.argv[1]), "default")
print("in", flush=True)
sys.stdin.readline()
mark.remove()
"""


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Probed folders; the probe runs in this process."""
    tried: list[Path] = []
    monkeypatch.setattr(chroma, "_try", lambda folder, _: tried.append(folder))
    return tried


@contextmanager
def another(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a process that uses the vectors until it reads a line."""
    command = [sys.executable, "-c", USER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout and process.stdout.readline() == "in\n"
        yield process


def opened(folder: Path) -> ChromaIndex:
    return ChromaIndex(folder, owner="local", collection="default", embedder=HashingEmbedder(dimension=8))


def marks(folder: Path) -> list[Path]:
    return [*folder.glob("in-use-*")]


def killed(folder: Path) -> Path:
    """The mark of a process that was killed while it used the vectors."""
    with another(folder) as process:
        process.kill()
    (mark,) = marks(folder)
    return mark


def test_live_process_needs_no_probe(tmp_path: Path, trials: list[Path]) -> None:
    with another(tmp_path) as process:
        first, second = opened(tmp_path), opened(tmp_path)
        assert len(marks(tmp_path)) == 3
        first.close()
        assert len(marks(tmp_path)) == 2
        process.communicate("\n")
    second.close()
    opened(tmp_path).close()
    assert (trials, marks(tmp_path)) == ([], [])


def test_probe_accepts_an_intact_index(tmp_path: Path) -> None:
    index = opened(tmp_path)
    index.apply(upsert=[entry("a", "a stone bridge").passages[0]], delete=[])
    index.close()
    killed(tmp_path)
    index = opened(tmp_path)
    assert index.count() == 1
    index.close()
    assert not marks(tmp_path)


@pytest.mark.parametrize("name", ["in-use-1-0123abcd", f"in-use-{os.getpid()}-0123abcd"], ids=["first", "own"])
def test_killed_process_is_noticed_once(tmp_path: Path, trials: list[Path], name: str) -> None:
    """Also one with the id of this process, as in a restarted container."""
    killed(tmp_path).rename(tmp_path / name)
    for _ in range(2):
        opened(tmp_path).close()
        assert (trials, marks(tmp_path)) == ([tmp_path], [])
