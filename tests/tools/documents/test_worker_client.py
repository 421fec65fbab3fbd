import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from linear_time import takes_linear_time

from sleuth.tools.documents.loading import load
from sleuth.tools.documents.resource_limits import Bounds, printable
from sleuth.tools.documents.worker_client import LIGHT_BYTES, FileReader
from sleuth.tools.errors import DocumentError, StoreError

PAGE = "<html><head><title>The mill</title></head><body><p>It stands in Varn, as ever.</p></body></html>"


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    opened = FileReader()
    yield opened
    opened.close()
    opened.stop()


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def refusal(reader: FileReader, path: Path) -> str:
    with pytest.raises(DocumentError) as caught:
        reader.read(path)
    return str(caught.value)


def test_a_file_reads_the_same_in_a_process_of_its_own(reader: FileReader, tmp_path: Path) -> None:
    for path in (write(tmp_path / "a.html", PAGE), write(tmp_path / "b.txt", "Gänse “dort”.\n" * (LIGHT_BYTES // 15))):
        assert reader.read(path) == load(path)


def test_why_a_file_cannot_be_read_comes_through_and_the_next_one_is_read(reader: FileReader, tmp_path: Path) -> None:
    assert refusal(reader, write(tmp_path / "a.pdf", "no PDF")) == (
        f"{tmp_path}/a.pdf: is not a PDF, or is damaged. Print it to a new PDF, or leave it out."
    )
    assert reader.read(write(tmp_path / "a.html", PAGE)).title == "The mill"


def test_a_process_that_was_killed_costs_one_file_at_most(reader: FileReader, tmp_path: Path) -> None:
    page = write(tmp_path / "a.html", PAGE)
    reader.read(page)
    reader.stop()
    assert reader.read(page).title == "The mill"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="only Linux bounds the memory of a process")
def test_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    reader = FileReader(bounds=Bounds(megabytes=1))
    assert "a.html: takes more than 1 MB to read" in refusal(reader, write(tmp_path / "a.html", PAGE))
    assert reader.read(write(tmp_path / "a.md", "# The mill\n\nWords.")).title == "The mill"


def test_a_text_that_is_too_long_names_the_limit_and_how_to_raise_it(tmp_path: Path) -> None:
    reader = FileReader(bounds=Bounds(characters=9))
    said = refusal(reader, write(tmp_path / "a.md", "Ten of it."))
    assert "has 10 characters of text, and at most 9 are read. Split it, or raise SLEUTH_FILE_CHARACTERS." in said


def test_loader_classes_and_what_they_print_are_of_that_process(tmp_path: Path) -> None:
    book = write(tmp_path / "a.ipynb", '{"cells": [{"cell_type": "markdown", "source": ["Of mills."]}]}')
    reader = FileReader(loaders={".ipynb": "NotebookLoader"})
    try:
        assert "Of mills." in reader.read(book).text
        assert "NotebookLoader cannot read it" in refusal(reader, write(tmp_path / "b.ipynb", "[1"))
    finally:
        reader.stop()


def test_nothing_is_read_once_it_is_closed(tmp_path: Path) -> None:
    page, reader = write(tmp_path / "a.html", PAGE), FileReader()
    reader.read(page)
    reader.close()
    with pytest.raises(StoreError, match="closed"):
        reader.read(page)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (b"a b\xc3\xa9.md", "a bé.md"),
        (b"\xff.md", "\\xff.md"),
        (b"a\nb.md", "a\\nb.md"),
        (b"\x1b[2J.md", "\\x1b[2J.md"),
    ],
)
def test_a_name_is_shown_on_one_line_and_can_be_stored(name: bytes, expected: str) -> None:
    assert printable(Path(os.fsdecode(name))) == expected
    expected.encode()


def test_text_and_markup_are_read_in_time_that_grows_with_their_size(tmp_path: Path) -> None:
    texts = {
        "heading.md": lambda size: "# a" + " " * size + "b",
        "marks.txt": lambda size: "a" + "\u0301\u0316" * (size // 2),
        "wide.csv": lambda size: "," * (size // 2) + "\n" + "x\n" * (size // 4),
    }
    for name, text in texts.items():
        assert takes_linear_time(lambda size, name=name, text=text: load(write(tmp_path / name, text(size)))), name
