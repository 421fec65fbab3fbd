import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.sources.web_pages.page import Span
from sleuth.tools.sources.web_pages.retriever import CHUNK_CHARS, chunk, is_question

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


def cut(text: str) -> list[str]:
    """The chunks of a text with a sentence on each line."""
    spans = [found.span() for found in re.finditer(r"[^\n]+", text)]
    return [text[start:end] for start, end in chunk(text, spans)]


@given(sentences=SENTENCES, gaps=st.lists(st.sampled_from([" ", "\n", "  ", "\n\n"]), min_size=1, max_size=3))
def test_each_character_is_in_a_chunk(sentences: list[str], gaps: list[str]) -> None:
    text, spans = laid_out(sentences, gaps)
    chunks = chunk(text, spans)
    last = 0
    for start, end in chunks:
        assert last <= start < end <= len(text)
        assert end - start <= CHUNK_CHARS
        assert not text[last:start].strip()
        last = end
    assert not text[last:].strip()


def test_sentences_are_joined_in_threes() -> None:
    assert cut("One.\nTwo.\nThree.\nFour.\nFive.") == ["One.\nTwo.\nThree.", "Four.\nFive."]


def test_a_question_is_joined_with_what_follows_up_to_the_limit() -> None:
    answers = [f"Answer {number} {'x' * 90}." for number in range(8)]
    first, *others = cut("\n".join(["Before.", "Who built it?", *answers]))
    assert first == "Before."
    assert others[0].startswith("Who built it?\nAnswer 0")
    assert others[0].count("Answer") == 5
    assert CHUNK_CHARS - 103 < len(others[0]) <= CHUNK_CHARS


def test_truncated_sentences_end_after_200_characters() -> None:
    long, short = "x" * 300, "Short."
    text = f"{long}\n{short}\n{short}"
    found = [text[start:end] for start, end in chunk(text, [(0, 300), (301, 307), (308, 314)], truncate=True)]
    assert found == ["x" * 200, f"{short}\n{short}"]
    assert cut(text) == [text]


def test_long_sentence_is_split_between_words() -> None:
    found = cut("word " * 150 + "end.")
    assert " ".join(found) == "word " * 150 + "end."
    assert [len(piece) for piece in found] == [599, 154]


ASKING = ["Who built it", "“Is it true", "It was?", "Really?”", "WERE they there", "can it", "Which of them", "本当？"]
OTHER = ["Isolated places.", "Candles burn.", "Whoever came.", "He asked who.", "", "1?!"]


@pytest.mark.parametrize("sentence", [*ASKING, *OTHER])
def test_questions_are_recognized(sentence: str) -> None:
    assert is_question(sentence) == (sentence in ASKING)
