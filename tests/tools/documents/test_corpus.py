import gzip
import json
from pathlib import Path

import pytest

from sleuth.tools.documents.corpus import MAX_LINE_BYTES, MAX_PASSAGE_CHARS, is_corpus, read_corpus
from sleuth.tools.documents.loading import LoadedDocument
from sleuth.tools.errors import DocumentError

GOOD = {"id": "a1", "title": "Arden", "text": "A town."}


def write(path: Path, *lines: object) -> Path:
    texts = (line if isinstance(line, str | bytes) else json.dumps(line) for line in lines)
    path.write_bytes(b"".join((text.encode() if isinstance(text, str) else text) + b"\n" for text in texts))
    return path


def error(path: Path) -> str:
    """The one error among what is read."""
    (found,) = [str(line) for line in read_corpus(path) if isinstance(line, DocumentError)]
    assert found.startswith(str(path))
    return found


def test_other_fields_of_a_line_are_those_of_its_document(tmp_path: Path) -> None:
    line = {**GOOD, "Client": "Ada", "amount": 7, "paid": True, "parts": ["a", "b"], "nested": {"a": 1}, "type": "x"}
    (read,) = read_corpus(write(tmp_path / "c.jsonl", line))
    assert isinstance(read, LoadedDocument)
    assert read.meta == {"client": "Ada", "amount": "7", "paid": "true", "parts": "a, b"}


def test_lines_keep_their_ids_titles_and_texts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.jsonl", GOOD, "", {"id": 7, "title": "Bröck", "text": "“Quote” – 日本."}, {"id": "x", "text": "t"}
    )
    lines = [line for line in read_corpus(path) if isinstance(line, LoadedDocument)]
    assert [(line.id, line.title, line.text) for line in lines] == [
        ("a1", "Arden", "A town."),
        ("7", "Bröck", "“Quote” – 日本."),
        ("x", "x", "t"),
    ]
    assert all(line.spans == ((0, len(line.text), "", ""),) for line in lines)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("c.jsonl.gz", gzip.compress(json.dumps(GOOD).encode())),
        ("C.JSONL", b"\xef\xbb\xbf" + json.dumps(GOOD).encode()),
        ("c.jsonl", rb'{"id": "a1", "title": "Arden\u0000", "text": "A\ud800\u0000\r\ntown."}'),
    ],
    ids=["gzipped", "with a byte order mark", "with characters that cannot be stored"],
)
def test_written_forms_are_normalized(tmp_path: Path, name: str, written: bytes) -> None:
    (tmp_path / name).write_bytes(written)
    assert is_corpus(tmp_path / name) and not is_corpus(Path("a.json")) and not is_corpus(Path("b.gz"))
    (line,) = read_corpus(tmp_path / name)
    assert isinstance(line, LoadedDocument)
    assert (line.id, line.title, line.text.replace("\ufffd\n", " ")) == ("a1", "Arden", "A town.")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("{broken", "Expecting property name"),
        ("[1, 2]", "is not an object"),
        ({"title": "t", "text": "x"}, 'no "id"'),
        ({"id": True, "text": "x"}, 'no "id"'),
        ({"id": " ", "text": "x"}, '"id" is empty'),
        ({"id": "..", "text": "x"}, "\"id\" is '..', which no address can contain"),
        ({"id": "b", "title": "t"}, 'no "text"'),
        ({"id": "b", "text": " \n"}, 'no "text"'),
        ({"id": "b", "text": ["x"]}, 'no "text"'),
        ({"id": "b", "title": 3, "text": "x"}, '"title" is not a string'),
        ("[" * 100_000, "nested too deeply"),
        ({"id": "b" * 600, "text": "x"}, "more than 512 characters"),
        ({"id": "b", "text": "x" * (MAX_PASSAGE_CHARS + 1)}, "has 100,001 characters, and a passage may have 100,000"),
        ("x" * (2 * MAX_LINE_BYTES + 7), "is longer than 8 MiB"),
        (b'{"id": "b", "text": "caf\xe9"}', "utf-8"),
        (GOOD, "the id 'a1' is already used on line 1"),
    ],
)
def test_a_bad_line_is_reported_and_the_others_are_read(tmp_path: Path, bad: object, reason: str) -> None:
    path = write(tmp_path / "c.jsonl", GOOD, bad, {**GOOD, "id": "a2"})
    lines = read_corpus(path)
    assert isinstance(next(lines), LoadedDocument), "lines are read as they are requested"
    problem, last = lines
    assert isinstance(problem, DocumentError)
    assert isinstance(last, LoadedDocument)
    assert "line 2" in str(problem)
    assert reason in str(problem)


def test_a_truncated_gzip_reports_after_the_good_lines(tmp_path: Path) -> None:
    lines = [json.dumps({"id": i, "text": f"Text number {i * i}."}) for i in range(5000)]
    whole = gzip.compress("\n".join(lines).encode())
    path = tmp_path / "c.jsonl.gz"
    path.write_bytes(whole[: len(whole) // 2])
    *good, last = read_corpus(path)
    assert len(good) > 1000
    assert all(isinstance(line, LoadedDocument) for line in good)
    assert f"breaks off after line {len(good)}" in str(last)


def test_file_without_usable_lines_is_reported(tmp_path: Path) -> None:
    assert "cannot be read" in error(tmp_path / "c.jsonl")
    assert "cannot be read" in error(write(tmp_path / "c.jsonl.gz", GOOD))
    assert '"text"' in error(write(tmp_path / "a.jsonl"))
    assert '"text"' in error(write(tmp_path / "b.jsonl", "", " "))
