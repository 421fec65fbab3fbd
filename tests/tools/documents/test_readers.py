"""Readers are found by suffix, imported at their first use, and added by entry points."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sleuth.tools.documents import readers
from sleuth.tools.documents.file_list import list_files
from sleuth.tools.documents.loading import load
from sleuth.tools.errors import DocumentError

CODE = """
from sleuth.tools.documents.formats.content import Content, Section

def read(data):
    return Content("Mills", [Section(data.decode().upper())])
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with readers as entry points; one of them is for a suffix that has a reader."""
    (tmp_path / "their_reader.py").write_text(CODE)
    metadata = tmp_path / "their_readers-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: their-readers\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[sleuth.readers]\n.bib = their_reader:read\n.TXT = their_reader:read\n.gone = sleuth.gone:read\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    readers.formats.cache_clear()
    yield tmp_path
    readers.formats.cache_clear()
    readers.reader_of.cache_clear()


def test_package_adds_a_reader(package: Path) -> None:
    files = [package / "mills.bib", package / "mills.txt"]
    for file in files:
        file.write_text("the mill stands in Varn")
    found, passed_over = list_files(files)
    assert ([item.path for item in found], passed_over) == (files, [])
    assert [load(file).text for file in files] == ["THE MILL STANDS IN VARN", "the mill stands in Varn"]
    assert (load(files[0]).title, readers.media_type_of(files[1])) == ("Mills", "text/plain")


def test_file_of_a_missing_part_is_not_read(package: Path) -> None:
    file = package / "mill.gone"
    file.write_text("the mill")
    with pytest.raises(
        DocumentError,
        match=r"mill\.gone: is not read\. A \.gone file needs the part formats, and sleuth\.gone is missing\.",
    ):
        load(file)


def test_page_lists_every_format() -> None:
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "documents.md").read_text()
    listed = {*re.findall(r"\.\w+", page)}
    assert readers.FORMATS.keys() - {""} <= listed, "Add the format to docs/how-to/documents.md."


def test_only_the_reader_of_a_file_is_imported(tmp_path: Path) -> None:
    (tmp_path / "mill.txt").write_text("the mill")
    script = (
        "import sys; from pathlib import Path; from sleuth.tools.documents import loading\n"
        "loading.load(Path(sys.argv[1]))\n"
        "print(*sorted(name for name in sys.modules if name.startswith('sleuth.tools.documents.formats.')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "mill.txt"], capture_output=True, text=True, check=True
    )
    imported = {name.rpartition(".")[2] for name in ran.stdout.split()}
    assert imported == {"archives", "content", "marks", "plain_formats", "tables"}
