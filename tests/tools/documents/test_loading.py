import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_time import takes_linear_time

from sleuth.tools.documents.corpus import read_corpus
from sleuth.tools.documents.file_list import list_files
from sleuth.tools.documents.loading import (
    LIGHT_BYTES,
    FileReader,
    LoadedDocument,
    PassageSpan,
    load,
)
from sleuth.tools.documents.readers import FORMATS
from sleuth.tools.documents.resource_limits import MAX_FILE_BYTES, Bounds, printable
from sleuth.tools.errors import DocumentError, StoreError, UsageError

PAGE = "<html><head><title>The mill</title></head><body><p>It stands in Varn, as ever.</p></body></html>"
NOTEBOOK = {".ipynb": "NotebookLoader"}
OLD = "It’s old.\nVery."


def tree(root: Path, *names: str) -> Path:
    for name in names:
        write(root / name, "text")
    return root


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def listed(*roots: Path, below: Path) -> list[str]:
    return [item.path.relative_to(below).as_posix() for item in list_files(roots)[0]]


def refusal(path: Path, read: Callable[[Path], object] = load) -> str:
    with pytest.raises(DocumentError) as caught:
        read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert len(message.splitlines()) == 1
    return message


IN_ORDER = ["A.HTML", "README", "a/b/c.pdf", "a/z.txt", "b.md", "d.jsonl.gz"]


@pytest.mark.parametrize(
    ("named", "files"),
    [
        ([""], IN_ORDER),
        (["c.xyz", "b.md", "", "a"], ["c.xyz", "b.md", *(each for each in IN_ORDER if each != "b.md")]),
        ([".hidden.md", ".git"], [".hidden.md", ".git/config.txt"]),
    ],
    ids=["in order of name", "named ones first and once", "hidden ones only if named"],
)
def test_files_of_named_paths(tmp_path: Path, named: list[str], files: list[str]) -> None:
    tree(tmp_path, *IN_ORDER, "c.xyz", ".git/config.txt", ".hidden.md")
    (tmp_path / "binary").write_bytes(b"\0\1\2" * 99)
    assert listed(*(tmp_path / name for name in named), below=tmp_path) == files


def test_links_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    tree(tmp_path, "home/a.md", "elsewhere/b.md")
    (tmp_path / "home" / "loop").symlink_to(tmp_path / "home", target_is_directory=True)
    (tmp_path / "home" / "self.md").symlink_to(tmp_path / "home" / "self.md")
    (tmp_path / "home" / "other").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert listed(tmp_path / "home", below=tmp_path) == ["home/a.md", "home/other/b.md", "home/self.md"]
    assert "cannot be opened" in refusal(tmp_path / "home" / "self.md")


def test_a_text_file(tmp_path: Path) -> None:
    path = tmp_path / "the-old_mill.TXT"
    for encoding in ("utf-8", "utf-16"):
        path.write_bytes("It’s old.\r\nVery.".encode(encoding))
        expected = LoadedDocument(
            title="The old mill", text=OLD, media_type="text/plain", spans=(PassageSpan(0, 15, ""),)
        )
        assert replace(load(path), date="") == expected


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"\0\1\2\3" * 99, "binary data"),
        ("a.txt", b" \n\t\n", "has no text, only white space"),
        ("a.csv", b"boat,built\n", "names of columns"),
        ("a.html", b"<body><div></div><script>show()</script></body>", "only by scripts"),
        ("a.mbox", b"Some text.", "not a mailbox"),
        ("a.xyz", b"text", ".docx"),
    ],
)
def test_file_without_text_has_its_reason(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    assert reason in refusal(tmp_path / name)


def test_an_empty_or_gigantic_file_is_not_parsed(tmp_path: Path) -> None:
    for name in ("a.txt", "a.ipynb"):
        for size, reason in ((0, "is empty"), (MAX_FILE_BYTES + 1, "at most 64.0 MiB")):
            with (tmp_path / name).open("wb") as file:
                file.truncate(size)
            assert reason in refusal(tmp_path / name, lambda path: load(path, loaders=NOTEBOOK))


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder with a file and a folder that may not be read, not by root either while the test runs."""
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as name:
        root = tree(Path(name), "a.txt", "closed/b.txt")
        root.chmod(0o755)
        (root / "a.txt").chmod(0)
        (root / "closed").chmod(0)
        os.seteuid(user or 65534)
        try:
            yield root
        finally:
            os.seteuid(user)
            (root / "closed").chmod(0o755)


def test_what_may_not_be_read_is_reported(guarded: Path) -> None:
    assert listed(guarded, below=guarded) == ["a.txt", "closed"]
    assert "Permission denied" in refusal(guarded / "a.txt")
    assert "is not a readable file" in refusal(guarded / "closed")
    with pytest.raises(UsageError, match=r"no file or folder '.*b.txt'"):
        listed(guarded / "closed" / "b.txt", below=guarded)


def test_a_name_is_shown_on_one_line_and_can_be_stored() -> None:
    shown = {b"a b\xc3\xa9.md": "a bé.md", b"\xff.md": "\\xff.md", b"a\nb.md": "a\\nb.md", b"\x1b[2J.md": "\\x1b[2J.md"}
    assert {name: printable(Path(os.fsdecode(name))) for name in shown} == shown


def test_text_and_markup_are_read_in_time_that_grows_with_their_size(tmp_path: Path) -> None:
    texts = {
        "heading.md": lambda size: "# a" + " " * size + "b",
        "marks.txt": lambda size: "a" + "\u0301\u0316" * (size // 2),
        "wide.csv": lambda size: "," * (size // 2) + "\n" + "x\n" * (size // 4),
    }
    for name, text in texts.items():
        assert takes_linear_time(lambda size, name=name, text=text: load(write(tmp_path / name, text(size)))), name


# In a worker process


SUFFIXES = {format.reader: suffix for suffix, format in FORMATS.items()}
ODD = [b"", b":", b"\xff", b"\0", b"next week!", b"20260230", b"00010101", b"9" * 5_000, b"0x" + b"f" * 5_000]
ODD += [b"Mon, 01 Jan 2024 00:00:00 +99999999999999999999", b"{", b"[" * 2_000, b'"', b"1e999", b"<a>"]
FORMS = [
    b"%b",
    b"---\nx: %b\n---\nText.\n",
    b"BEGIN:VCALENDAR\nBEGIN:VEVENT\nDTSTART:20260101\nDTEND:%b\nEND:VEVENT\nEND:VCALENDAR\n",
    b"1\n%b:00:01,000 --> 00:00:02,000\nText.\n",
    b'{"id": "a", "text": "Text.", "date": "%b"}\n',
    b"From: a\nDate: %b\n\nText.\n",
    b'<?xml version="1.0"?><a><b>%b</b></a>',
]


def read(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with suppress(DocumentError):
        load(path)
    list(read_corpus(path))


@pytest.mark.parametrize("suffix", sorted(SUFFIXES.values()))
@settings(max_examples=20)
@given(data=st.binary(min_size=1))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, suffix: str, data: bytes) -> None:
    read(tmp_path_factory.getbasetemp() / f"any{suffix}", data)


@pytest.mark.parametrize("suffix", sorted(SUFFIXES.values()))
def test_odd_values_are_read_or_refused(tmp_path: Path, suffix: str) -> None:
    for form, odd in product(FORMS, ODD):
        read(tmp_path / f"odd{suffix}", form % odd)


@pytest.fixture(scope="module")
def reader() -> Iterator[FileReader]:
    opened = FileReader(loaders=NOTEBOOK)
    yield opened
    opened.close()


def test_a_file_reads_the_same_in_a_process_of_its_own(reader: FileReader, tmp_path: Path) -> None:
    for path in (write(tmp_path / "a.html", PAGE), write(tmp_path / "b.txt", "Gänse “dort”.\n" * (LIGHT_BYTES // 15))):
        assert reader.read(path) == load(path)


def test_loader_classes_and_what_they_print_are_of_that_process(reader: FileReader, tmp_path: Path) -> None:
    book = write(tmp_path / "the-mill.ipynb", '{"cells": [{"cell_type": "raw", "source": "I\\u0308ts old."}]}')
    read = reader.read(book)
    assert (read.title, read.media_type) == ("The mill", "text/plain") and "Ïts old." in read.text
    assert "NotebookLoader cannot read it" in refusal(write(tmp_path / "b.ipynb", "[1"), reader.read)


def test_why_a_file_cannot_be_read_comes_through_and_the_next_one_is_read(reader: FileReader, tmp_path: Path) -> None:
    assert refusal(write(tmp_path / "a.pdf", "no PDF"), reader.read) == (
        f"{tmp_path}/a.pdf: is not a .pdf file, or is damaged. Save it again, or leave it out."
    )
    page = write(tmp_path / "a.html", PAGE)
    assert reader.read(page).title == "The mill"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="only Linux bounds the memory of a process")
def test_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    reader = FileReader(bounds=Bounds(megabytes=1))
    assert "a.html: takes more than 1 MB to read" in refusal(write(tmp_path / "a.html", PAGE), reader.read)
    assert reader.read(write(tmp_path / "a.md", "# The mill\n\nWords.")).title == "The mill"


def test_a_text_that_is_too_long_names_the_limit_and_how_to_raise_it(tmp_path: Path) -> None:
    reader = FileReader(bounds=Bounds(characters=9))
    reason = refusal(write(tmp_path / "a.md", "Ten of it."), reader.read)
    assert "has 10 characters of text, and at most 9 are read. Split it, or raise SLEUTH_FILE_CHARACTERS." in reason


def test_closed_reader_reads_only_what_needs_no_process(tmp_path: Path) -> None:
    reader = FileReader()
    reader.close()
    assert reader.read(write(tmp_path / "a.txt", "Of mills.")).text == "Of mills."
    with pytest.raises(StoreError, match="closed"):
        reader.read(write(tmp_path / "a.html", PAGE))
