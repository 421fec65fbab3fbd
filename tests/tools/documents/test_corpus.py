import gzip
import json
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


@pytest.mark.parametrize("name", ["a.json", "b.gz"])
def test_other_names_are_not_corpora(name: str) -> None:
    assert not is_corpus(Path(name))


def test_lines_keep_their_ids_titles_and_texts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "c.jsonl", GOOD, "", {"id": 7, "title": "Bröck", "text": "“Quote” – 日本."}, {"id": "x", "text": "t"}
    )
    assert list(read_corpus(path)) == [
        CorpusLine(id="a1", title="Arden", text="A town."),
        CorpusLine(id="7", title="Bröck", text="“Quote” – 日本."),
        CorpusLine(id="x", title="x", text="t"),
    ]


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
    assert is_corpus(tmp_path / name)
    (line,) = read_corpus(tmp_path / name)
    assert isinstance(line, CorpusLine)
    assert (line.id, line.title, line.text.replace("\ufffd\n", " ")) == ("a1", "Arden", "A town.")


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
    lines = read_corpus(path)
    assert isinstance(next(lines), CorpusLine), "lines are read as they are requested"
    problem, last = lines
    assert isinstance(problem, DocumentError)
    assert isinstance(last, CorpusLine)
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
