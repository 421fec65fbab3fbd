import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.sources.web_pages.chunks import CHUNK_CHARS, chunk
from sleuth.tools.sources.web_pages.page import Span
from sleuth.tools.sources.web_pages.sentences import is_question

LIMIT = CHUNK_CHARS
SENTENCES = st.lists(
    st.one_of(
        st.text(st.characters(blacklist_categories=("Z", "C")), min_size=1, max_size=900),
        st.sampled_from(
            ["Who built it?", "It was built by Rosa Quill.", "why so", "word " * 150 + "end.", "日本語。" * 200]
        ),
    ).map(str.strip),
    max_size=25,
).map(lambda found: [sentence for sentence in found if sentence])


def laid_out(sentences: list[str], gaps: list[str]) -> tuple[str, list[Span]]:
    """A text of these sentences with white space between them, and their positions."""
    text, spans = "", []
    for at, sentence in enumerate(sentences):
        text += gaps[at % len(gaps)]
        spans.append((len(text), len(text) + len(sentence)))
        text += sentence
    return text, spans


def cut(text: str, **options: bool) -> list[str]:
    """The chunks of a text with a sentence on each line."""
    spans = [found.span() for found in re.finditer(r"[^\n]+", text)]
    return [text[start:end] for start, end in chunk(text, spans, **options).spans]


@given(
    sentences=SENTENCES,
    gaps=st.lists(st.sampled_from([" ", "\n", "  ", "\n\n"]), min_size=1, max_size=3),
    keep_rest=st.booleans(),
)
def test_each_character_is_in_a_chunk_or_reported_as_cut(
    sentences: list[str], gaps: list[str], keep_rest: bool
) -> None:
    text, spans = laid_out(sentences, gaps)
    chunks = chunk(text, spans, keep_rest=keep_rest)
    taken = [*chunks.spans, *chunks.cut]
    assert all(0 <= start < end <= len(text) for start, end in taken)
    in_order = sorted(taken)
    assert list(chunks.spans) == sorted(chunks.spans)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(in_order)), "they overlap"
    left_out = text
    for start, end in reversed(in_order):
        left_out = left_out[:start] + left_out[end:]
    assert not left_out.strip()
    assert all(end - start <= LIMIT for start, end in chunks.spans)
    assert not (keep_rest and chunks.cut)
    dropped = {start for start, _ in chunks.cut}
    assert all(any(start < at <= end for start, end in spans) for at in dropped)


def test_sentences_are_joined_in_threes() -> None:
    assert cut("One.\nTwo.\nThree.\nFour.\nFive.") == ["One.\nTwo.\nThree.", "Four.\nFive."]


def test_a_question_is_joined_with_what_follows_up_to_the_limit() -> None:
    answers = [f"Answer {number} {'x' * 90}." for number in range(8)]
    first, *others = cut("\n".join(["Before.", "Who built it?", *answers]))
    assert first == "Before."
    assert others[0].startswith("Who built it?\nAnswer 0")
    assert others[0].count("Answer") == 5
    assert LIMIT - 103 < len(others[0]) <= LIMIT


def test_long_sentence_is_split_between_words() -> None:
    found = cut("word " * 150 + "end.")
    assert " ".join(found) == "word " * 150 + "end."
    assert [len(piece) for piece in found] == [599, 154]


def test_as_in_the_paper_what_is_too_long_is_dropped() -> None:
    text = "word " * 150 + "end.\nNext."
    chunks = chunk(text, [(0, 754), (755, 760)], keep_rest=False)
    assert [text[start:end] for start, end in chunks.spans] == [("word " * 120).strip(), "Next."]
    assert [text[start:end].strip() for start, end in chunks.cut] == [("word " * 30) + "end."]


@pytest.mark.parametrize(
    "sentence",
    [
        "Who built it",
        "“Is it true",
        "It was?",
        "Really?”",
        "WERE they there",
        "can it",
        "Which of them, then",
        "本当？",
    ],
)
def test_questions(sentence: str) -> None:
    assert is_question(sentence)


@pytest.mark.parametrize("sentence", ["Isolated places.", "Candles burn.", "Whoever came.", "He asked who.", "", "1?!"])
def test_other_sentences(sentence: str) -> None:
    assert not is_question(sentence)
