"""A damaged file of SLEUTH_HOME: its data is still found, or an error names a remedy that works."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from storage_operations import Operation, execute

from sleuth.tools.settings import Settings

# Chroma writes an index to files only from 1,000 vectors on. Texts that share words with some others, as real ones do:
# its approximate search misses one of twenty among vectors that are all equally far from each other.
TEXTS = {
    f"d{n}": (f"Edric Gannow built tower {n // 100}east street{n // 10 % 10} house{n % 10} at Brindlecote {n}.",)
    for n in range(1_100)
}
WANTED = {"d0": TEXTS["d0"]}
# An empty catalogue is a new one, with a warning.
ADVICE = re.compile(r"delete that (folder|file)|put a backup|no documents yet")
DERIVED = ("keywords", "mentions", "chroma")
FILES = (
    "catalogue.db",
    "mentions/*.db",
    "keywords/*/meta.json",
    "keywords/*/applied",
    "keywords/*/*.store",
    "keywords/*/*.idx",
    "keywords/*/*.term",
    "chroma/chroma.sqlite3",
    "locks/home.db",
)
# Chroma reads `header.bin`, `data_level0.bin` and `link_lists.bin` without a check: it may end the process.
OTHER_FILES = (
    "keywords/*/.managed.json",
    "keywords/*/layout",
    "keywords/*/reached",
    "keywords/*/*.fast",
    "keywords/*/*.fieldnorm",
    "keywords/*/*.pos",
    "chroma/*/length.bin",
    "chroma/*/index_metadata.pickle",
    "locks/indexing.lock",
)


def noise(content: bytes) -> bytes:
    """The middle third is something else."""
    third = len(content) // 3
    return content[:third] + Random(1).randbytes(max(1, len(content) - 2 * third)) + content[-third:]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def zeros(content: bytes) -> bytes:
    """A page in the middle is empty."""
    start = len(content) // 8192 * 4096
    page = content[start : start + 4096]
    return content[:start] + bytes(len(page)) + content[start + len(page) :]


def garbage(content: bytes) -> bytes:
    return Random(2).randbytes(len(content))


def nothing(_content: bytes) -> bytes:
    return b""


DAMAGE = [noise, cut, zeros, garbage, nothing]
CASES = [
    *(pytest.param(file, each, marks=pytest.mark.nightly) for file in FILES for each in DAMAGE[:2]),
    *(pytest.param(file, each, marks=pytest.mark.faults) for file in FILES for each in DAMAGE[2:]),
    *(pytest.param(file, each, marks=pytest.mark.faults) for file in OTHER_FILES for each in DAMAGE),
]


@pytest.fixture(scope="module")
async def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with documents, in all indexes."""
    home = tmp_path_factory.mktemp("sound") / "home"
    file = home.parent / "corpus.jsonl"
    rows = [{"id": name, "title": name, "text": text} for name, (text,) in TEXTS.items()]
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    settings = Settings(home=home, embedder="hashing")
    await execute(Operation(kind="read", settings=settings, texts={}, file=file))
    return home


async def look(home: Path) -> dict[str, str]:
    """Return the error of each mode that does not find the document."""
    done = await execute(Operation(kind="look", settings=Settings(home=home, embedder="hashing"), texts=WANTED))
    told = [json.loads(line) for line in done.names]
    return {mode: said or f"found {found}" for mode, found, said in told if found != ["d0"]}


@pytest.mark.parametrize(("pattern", "damage"), CASES)
async def test_damaged_file_is_named_or_replaced(
    sound: Path, tmp_path: Path, pattern: str, damage: Callable[[bytes], bytes]
) -> None:
    home = tmp_path / "home"
    shutil.copytree(sound, home)
    file = max(home.glob(pattern), key=lambda path: path.stat().st_size)
    file.write_bytes(damage(file.read_bytes()))
    said = await look(home)
    assert all(ADVICE.search(each) for each in said.values()), said
    derived = home / pattern.partition("/")[0]
    if said and derived.name in DERIVED:  # the remedy of the message
        shutil.rmtree(derived)
        assert not await look(home)
    elif said:
        shutil.copyfile(sound / pattern, home / pattern)
        assert not await look(home)
