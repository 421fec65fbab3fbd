import sys
import unicodedata
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sleuth.tools.errors import DocumentError
from sleuth.tools.text.encodings import decode
from sleuth.tools.text.markdown import markdown_table
from sleuth.tools.text.normalization import MOST_MARKS, normalize, title_from, unwrap_lines

GERMAN = "Größe und Maß: Übung macht den Meister, sagte „Frau Müller“ – schön. "


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        *((GERMAN, name) for name in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252")),
        ("Привет, это текст на русском языке, довольно короткий.", "cp1251"),
        *(("灯塔由老船长建造", "gb2312"), ("我们的家在海边。", "gb2312"), ("燈塔由老船長建造", "big5")),
        *(
            ("등대는 로사가 지었다", "euc_kr"),
            ("灯台はローザが建てた", "shift_jis"),
            ("灯台はローザが建てた", "euc_jp"),
        ),
        *(("Le phare a été bâti à côté", "cp1252"), ("Grüße", "latin-1")),
    ],
)
def test_text_is_read_in_its_encoding(text: str, encoding: str) -> None:
    assert decode(text.encode(encoding)) == text


def test_a_declared_encoding_wins_over_a_guess_but_not_over_utf_8() -> None:
    assert decode("żółć".encode("cp1250"), declared="cp1250") == "żółć"
    assert decode("żółć".encode(), declared="cp1250") == "żółć"
    assert decode("café".encode("cp1252"), declared="nobody-knows") == "café"


def test_a_few_broken_bytes_do_not_change_the_encoding() -> None:
    data = GERMAN.encode() * 20 + b"\xff" + GERMAN.encode()
    assert decode(data) == GERMAN * 20 + "\ufffd" + GERMAN


PICTURE = b"\x89PNG\r\n\x1a\n" + b"a" * 99
RANDOM = Random(1).randbytes(10_000)


@pytest.mark.parametrize(
    "data", [PICTURE, b"%PDF-1.7 all ascii", bytes(range(256)) * 20, b"\0" * 50, b"PK\x03\x04zip", RANDOM]
)
def test_binary_data_is_no_text(data: bytes) -> None:
    with pytest.raises(DocumentError, match="binary data"):
        decode(data)


def test_a_stray_zero_is_dropped() -> None:
    assert decode(b"The mill\0 at Arden" + b"." * 90) == "The mill at Arden" + "." * 90


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("page\x0cpage", "page\npage"),
        ("\ufeffa\x07b\x1b", "ab"),
        ("mill\u00adstone", "millstone"),
        ("e\u0301", "é"),
        ("x\ud800y", "x\ufffdy"),
        ("“quotes” – and … stay\tas they are", "“quotes” – and … stay\tas they are"),
    ],
)
def test_normalise(raw: str, clean: str) -> None:
    assert normalize(raw) == clean


@settings(deadline=None)
@given(st.text(st.characters()))
def test_normalised_text_stays_as_it_is_and_can_be_stored(text: str) -> None:
    clean = normalize(text)
    assert normalize(clean) == clean
    assert "\0" not in clean
    clean.encode()


PROSE = "The mill at Arden was built by Rosa Quill in the year 1843, and\nit stood there."
ROWS = "Heron of the northern line | 1843 | Rosa Quill of the upper mill\nGrey Wagtail | 1851 | Tom Ash"
SENTENCES = "The mill at Arden was built by Rosa Quill in the year 1843 or so.\nThen it stood."


@pytest.mark.parametrize(("text", "flows"), [(PROSE, True), (ROWS, False), (SENTENCES, False), ("short\nlines", False)])
def test_unwrap_joins_prose_only_and_moves_nothing(text: str, flows: bool) -> None:
    assert unwrap_lines(text) == (text.replace("\n", " ") if flows else text)


@settings(deadline=None)
@given(st.lists(st.sampled_from([*PROSE.splitlines(), *ROWS.splitlines(), "# Arden", ""])).map("\n".join))
def test_unwrap_keeps_every_character_in_its_place(text: str) -> None:
    assert len(unwrap_lines(text)) == len(text)
    assert all(old == new or (old, new) == ("\n", " ") for old, new in zip(text, unwrap_lines(text), strict=True))


def test_titles_have_one_line_of_bounded_length() -> None:
    assert title_from(" The\n  mill ") == "The mill"
    assert title_from(" \n") is None
    assert title_from(None) is None
    assert len(title_from("word " * 1000) or "") <= 200


def test_a_markdown_table_escapes_fills_up_and_drops_empty_rows() -> None:
    assert markdown_table([["a", "b|c"], ["", " "], ["two\nlines"]]) == "| a | b\\|c |\n| --- | --- |\n| two lines |  |"
    assert markdown_table([]) == ""
    assert markdown_table([[""]]) == ""


def test_a_letter_keeps_as_many_marks_as_any_language_has_and_no_more() -> None:
    some = "a" + "\u0316" * MOST_MARKS + "b"
    assert normalize(some) == some
    assert normalize("a" + "\u0316" * 500 + "b") == some
    assert normalize("“…”—" * 20 + "👨‍👩‍👧" * 20) == "“…”—" * 20 + "👨‍👩‍👧" * 20


def test_no_letter_is_taken_for_a_mark() -> None:
    every = map(chr, range(sys.maxunicode + 1))
    marks = [character for character in every if unicodedata.combining(character)]
    assert not [character for character in marks if character.isascii() or character.isalnum() or character.isspace()]
