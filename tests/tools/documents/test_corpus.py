import gzip
import json
import os
from pathlib import Path

import pytest

from sleuth.tools.documents.corpus import MAX_LINE_BYTES, MAX_PASSAGE_CHARS, CorpusLine, is_corpus, read_corpus
from sleuth.tools.errors import DocumentError

GOOD = {"id": "a1", "title": "Arden", "text": "A town."}


def write(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines), "utf-8")
    return path


def error(path: Path) -> str:
    """The one error among what is read."""
    (found,) = [str(line) for line in read_corpus(path) if isinstance(line, DocumentError)]
    assert found.startswith(str(path))
    return found


@pytest.mark.parametrize(
    ("name", "expected"), [("a.jsonl", True), ("A.JSONL.GZ", True), ("a.json", False), ("b.gz", False)]
)
def test_corpora_are_known_by_name(name: str, expected: bool) -> None:
    assert is_corpus(Path(name)) is expected


def test_lines_keep_their_ids_titles_and_texts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.jsonl", GOOD, "", {"id": 7, "title": "Bröck", "text": "“Quote” – 日本."}, {"id": "x", "text": "t"}
    )
    assert list(read_corpus(path)) == [
        CorpusLine(id="a1", title="Arden", text="A town."),
        CorpusLine(id="7", title="Bröck", text="“Quote” – 日本."),
        CorpusLine(id="x", title="x", text="t"),
    ]


def test_a_gzipped_corpus_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    assert list(read_corpus(path)) == [CorpusLine(id="a1", title="Arden", text="A town.")]


def test_a_byte_order_mark_is_no_part_of_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert [type(line) for line in read_corpus(path)] == [CorpusLine]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{broken", "Expecting property name"),
        ("[1, 2]", "is not an object"),
        ({"title": "t", "text": "x"}, 'no "id"'),
        ({"id": True, "text": "x"}, 'no "id"'),
        ({"id": " ", "text": "x"}, '"id" is empty'),
        ({"id": "b", "title": "t"}, 'no "text"'),
        ({"id": "b", "text": " \n"}, 'no "text"'),
        ({"id": "b", "text": ["x"]}, 'no "text"'),
        ({"id": "b", "title": 3, "text": "x"}, '"title" is not a string'),
        ("[" * 100_000, "nested too deeply"),
        ({"id": "b" * 600, "text": "x"}, "more than 512 characters"),
        ({"id": "b", "text": "x" * (MAX_PASSAGE_CHARS + 1)}, "has 100,001 characters, and a passage may have 100,000"),
        ("x" * (2 * MAX_LINE_BYTES + 7), "is longer than 8 MiB"),
    ],
)
def test_a_bad_line_is_reported_and_the_others_are_read(tmp_path: Path, bad: object, reason: str) -> None:
    path = write(tmp_path / "c.jsonl", GOOD, bad, {**GOOD, "id": "a2"})
    first, problem, last = read_corpus(path)
    assert isinstance(first, CorpusLine)
    assert isinstance(last, CorpusLine)
    assert isinstance(problem, DocumentError)
    assert "line 2" in str(problem)
    assert reason in str(problem)


def test_a_line_that_is_not_utf_8_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"id": "b", "text": "caf\xe9"}\n')
    assert "line 2" in error(path)
    assert "utf-8" in error(path)


def test_an_id_that_comes_again_names_both_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", {**GOOD, "id": 7}, GOOD, {**GOOD, "id": "7"})
    assert "line 3" in error(path)
    assert "already used on line 1" in error(path)


def test_what_cannot_be_stored_is_replaced(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", r'{"id": "a", "title": "T\u0000", "text": "x\ud800y\u0000\r\nz"}')
    assert list(read_corpus(path)) == [CorpusLine(id="a", title="T", text="x\ufffdy\nz")]


def test_a_truncated_gzip_reports_after_the_good_lines(tmp_path: Path) -> None:
    lines = [json.dumps({"id": i, "text": f"Text number {i * i}."}) for i in range(5000)]
    whole = gzip.compress("\n".join(lines).encode())
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    *good, last = read_corpus(path)
    assert len(good) > 1000
    assert all(isinstance(line, CorpusLine) for line in good)
    assert f"breaks off after line {len(good)}" in str(last)


@pytest.mark.parametrize("content", [b"", b"\n \n"])
def test_corpus_without_lines_explains_the_format(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "c.jsonl").write_bytes(content)
    assert '"text"' in error(tmp_path / "c.jsonl")


def test_a_file_that_is_not_there_or_not_gzipped_is_reported(tmp_path: Path) -> None:
    assert "cannot be read" in error(tmp_path / "c.jsonl")
    assert "cannot be read" in error(write(tmp_path / "c.jsonl.gz", GOOD))


def test_lines_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", GOOD, "{broken")
    lines = read_corpus(path)
    assert isinstance(next(lines), CorpusLine)
    assert isinstance(next(lines), DocumentError)


def test_a_corpus_that_unpacks_without_end_is_broken_off(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode() + b"\n") + gzip.compress(b" " * (1 << 20)) * 12)
    first, last = read_corpus(path)
    assert isinstance(first, CorpusLine)
    assert "breaks off after line 1 (it unpacks to more than 100 times its size)" in str(last)


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "c.jsonl")
    assert "no ordinary file" in error(tmp_path / "c.jsonl")
