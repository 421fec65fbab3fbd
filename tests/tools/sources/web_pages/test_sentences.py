import itertools

from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.sources.web_pages.sentences import sentences

PIECES = st.sampled_from(
    ["Dr. ", "C\xa0.", "“Who?” ", ". ", "\n", "A", "é", "😀", "\u2028", "No. 5 ", "J. R. R. ", "?!", "\t"]
)


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]


@given(st.one_of(st.text(max_size=200), st.lists(PIECES, max_size=40).map("".join)))
def test_every_character_that_is_not_space_is_in_one_sentence(text: str) -> None:
    spans = sentences(text)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(spans))


def test_abbreviations_end_no_sentence() -> None:
    assert found("Dr. Quill paid $5.3 million, i.e. too much. J. R. Ash did not.") == [
        "Dr. Quill paid $5.3 million, i.e. too much.",
        "J. R. Ash did not.",
    ]


def test_a_line_s_end_is_white_space() -> None:
    assert found("It stands\nby the weir. It is old.") == ["It stands\nby the weir.", "It is old."]
