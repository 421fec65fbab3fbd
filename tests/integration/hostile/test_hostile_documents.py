"""Documents that somebody means ill with: each is read, or refused with a reason, in bounded time and memory.

The whole lot is made here and read in by a process of its own, a folder at a time, with bounds lower than the usual.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hostile_files import (
    EITHER,
    NAMES,
    READ,
    SAMPLE,
    Made,
    bombs,
    characters,
    corpora,
    lies,
    make_places,
    markdown,
    pages,
    sizes,
    tables,
    trees,
    word_files,
)

from sleuth.tools.documents.resource_limits import printable
from sleuth.tools.storage.catalogue import Catalogue
from sleuth.tools.storage.database import catalogue_url, open_engine

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux bounds a process's memory and tells its peak"
)

CHILD = Path(__file__).parent / "ingest_measured.py"
SECONDS, MEGABYTES = 5, 1_024
"""What one file may take here: so much is enough for every honest one."""
LARGE_SECONDS = 60
"""What a file that is only large may take, since none is to be refused for that: on a slow machine 5 s are too few."""
PARENT_MEGABYTES = 1_500
"""Memory limit of the ingesting process."""
GROUPS: list[Callable[[], Made]] = [
    characters, sizes, markdown, tables, word_files, pages, trees, bombs, lies, corpora
]  # fmt: skip


@dataclass
class Outcome:
    """Result of a folder: the names and titles of the documents that were read, and the reasons by name."""

    read: set[str]
    titles: list[str]
    refused: dict[str, list[str]]


def read_in(folder: Path, seconds: int = SECONDS) -> Outcome:
    """A good file comes last; the process has to live to see it."""
    home = folder.parent / "home"
    (folder / "zz-good.md").write_text(f"# Last\n\n{SAMPLE}")
    settings = {
        "SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none",
        "SLEUTH_FILE_SECONDS": str(seconds), "SLEUTH_FILE_MEGABYTES": str(MEGABYTES),
    }  # fmt: skip
    command = [sys.executable, CHILD, folder]
    done = subprocess.run(command, env={**os.environ, **settings}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    result = json.loads(done.stdout)
    assert result["peak"] < PARENT_MEGABYTES
    refused: dict[str, list[str]] = {}
    for line in result["failures"]:
        assert line.isprintable() and len(line) < 1_000
        name = line.removeprefix(f"{folder}/").partition(": ")[0].partition(", line ")[0]
        refused.setdefault(name, []).append(line)
    catalogue = Catalogue(open_engine(catalogue_url(home, None)), owner="local", collection="default")
    documents = catalogue.list_documents(limit=100_000)
    assert not any("root:x:0:0" in each.text for each in catalogue.passages(sorted(catalogue.passage_ids())))
    catalogue.close()
    read = {document.source.removeprefix(f"{folder}/") for document in documents}
    assert "zz-good.md" in read
    return Outcome(read, [document.title for document in documents], refused)


def complaint(outcome: Outcome, name: str, expected: str) -> str | None:
    """Return the difference between the result of a file and the expected one, if there is any."""
    reasons = outcome.refused.get(name, [])
    if expected == READ:
        return None if name in outcome.read else f"was not read: {reasons}"
    if expected == EITHER:
        return None if (name in outcome.read) != bool(reasons) else f"was both or neither: {reasons}"
    return None if name not in outcome.read and any(expected in each for each in reasons) else f"{reasons}"


@pytest.mark.nightly
@pytest.mark.timeout(3_600)  # minutes on a machine that has others to serve, too
@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.__name__)
def test_each_file_is_read_or_refused_with_a_reason(group: Callable[[], Made], tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    made = group()
    for name, (_, make) in made.items():
        (folder / name).write_bytes(make())
    outcome = read_in(folder, LARGE_SECONDS if group is sizes else SECONDS)
    wrong = {name: complaint(outcome, name, expected) for name, (expected, _) in made.items()}
    assert {name: what for name, what in wrong.items() if what} == {}
    assert not Path("/tmp/sleuth-was-here.xml").exists()


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
def test_odd_places_and_names_are_reported_on_one_line_each(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    expected = make_places(folder)
    outcome = read_in(folder)
    assert {name: what for name, part in expected.items() if (what := complaint(outcome, name, part))} == {}
    named = {printable(Path(os.fsdecode(name))) for name in NAMES if not name.startswith(b".")}
    assert named <= outcome.read
    assert all(title.isprintable() for title in outcome.titles)
