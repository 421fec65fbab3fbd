import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.text.tokenization import sentence_spans

PIECES = st.sampled_from(
    ["Dr. ", "C\xa0.", "“Who?” ", ". ", "\n", "A", "é", "😀", "\u2028", "No. 5 ", "J. R. R. ", "?!", "\t"]
)


def found(text: str, *, lines: bool = True) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, lines=lines)]


@pytest.mark.parametrize("lines", [True, False])
@given(text=st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_every_character_that_is_not_space_is_in_one_sentence(lines: bool, text: str) -> None:
    spans = sentence_spans(text, lines=lines)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_abbreviations_end_no_sentence() -> None:
    assert found(
        "Dr. Quill paid $5.3 million, i.e. too much. J. R. Ash came to St. Louis.\n\nHe left! 湖は深い。冷たい。"
    ) == [
        "Dr. Quill paid $5.3 million, i.e. too much.",
        "J. R. Ash came to St. Louis.",
        "He left!",
        "湖は深い。",
        "冷たい。",
    ]


def test_list_items_and_headings_are_sentences_of_their_own() -> None:
    assert found("# Copper Sunday\n- Dunvarrow\n- Port Lethany") == ["# Copper Sunday", "- Dunvarrow", "- Port Lethany"]


def test_wrapped_line_continues_its_sentence() -> None:
    text = "The weir below the old mill of Port Lethany was rebuilt by\nthe council. It is old."
    assert found(text) == ["The weir below the old mill of Port Lethany was rebuilt by\nthe council.", "It is old."]


def test_line_end_is_white_space_where_lines_do_not_count() -> None:
    assert found("It is\nby the weir. It is old.", lines=False) == ["It is\nby the weir.", "It is old."]
