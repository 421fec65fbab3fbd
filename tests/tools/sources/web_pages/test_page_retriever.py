"""Passages of pages, and the search in them."""

import re

import pytest
from hashing_embedder import HashingEmbedder
from hypothesis import given
from hypothesis import strategies as st

from sleuth.tools.errors import UsageError
from sleuth.tools.search.retriever import DocumentReader, Mode, Query
from sleuth.tools.text.tokenization import Span
from sleuth.tools.types import Hit, Passage
from sleuth.tools.web_pages.page import PageText, Table
from sleuth.tools.web_pages.retriever import (
    CHUNK_CHARS,
    FusedRetriever,
    PageRetriever,
    chunk,
    is_question,
    table_passages,
    text_passages,
)

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


LINES = ["The weir house was built in 1843.", "Rosa Quill built it.", "It stands.", "Ferries cross the lake at noon."]
TEXT = "\n".join(LINES)
TABLE = Table(markdown="| Keeper | Years |\n| --- | --- |\n| Tom Ash | 1850 |", caption="Keepers")


def page(name: str = "Weir house", **fields: object) -> PageText:
    starts = [TEXT.index(line) for line in LINES]
    spans = tuple((start, start + len(line)) for start, line in zip(starts, LINES, strict=True))
    url = f"https://a.example/{name.replace(' ', '-')}"
    return PageText(id=url, name=name, url=url, text=TEXT, sentences=spans, tables=(TABLE,), **fields)  # type: ignore[arg-type]


def test_passages_have_their_positions() -> None:
    first, second = text_passages(page())
    assert (first.text, second.text) == ("\n".join(LINES[:3]), LINES[3])
    assert all(TEXT[found.start : found.end] == found.text for found in (first, second))
    assert (first.document_id, first.title) == ("https://a.example/Weir-house", "Weir house")
    [table] = table_passages(page())
    assert table.document_id == "https://a.example/Weir-house#table-1"
    assert table.title == "Weir house (Keepers: Keeper | Years)"
    assert TABLE.markdown[table.start : table.end] == table.text
    assert len({first.id, second.id, table.id}) == 3


@pytest.mark.parametrize("mode", ["keyword", "dense", "hybrid", "graph"])
async def test_text_and_tables_are_found(mode: Mode) -> None:
    embedder = HashingEmbedder()
    retriever = PageRetriever.over([page()], embedder)
    hits = await retriever.search(Query(text="when do ferries cross the lake", k=2, mode=mode))
    assert hits[0].passage.text == LINES[3]
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    hits = await retriever.search(Query(text="| Tom Ash | 1850 |", k=1, mode=mode))
    assert "Tom Ash" in hits[0].passage.text
    assert len(embedder.embedded) == (0 if mode == "keyword" else 3), "passages are embedded once"


async def test_without_an_embedder_words_are_left() -> None:
    retriever = PageRetriever.over([page()], None)
    assert (await retriever.search(Query(text="ferries")))[0].passage.text == LINES[3]
    with pytest.raises(UsageError, match="SLEUTH_EMBEDDER"):
        await retriever.search(Query(text="ferries", mode="dense"))
    with pytest.raises(UsageError, match="empty"):
        await retriever.search(Query(text=" "))
    assert await PageRetriever([], None).search(Query(text="x")) == []


class Collection:
    """Finds one passage."""

    passage = Passage(id="mill", document_id="mill.md", title="Mill", text="A mill.", start=0, end=7)

    async def search(self, _: Query) -> list[Hit]:
        return [Hit(passage=self.passage, score=9.0, rank=1)]


class ReadableCollection(Collection):
    """Can read its document too."""

    async def passages_of(self, document_id: str) -> list[Passage]:
        return [self.passage] if document_id == self.passage.document_id else []


async def test_pages_are_searched_and_read_with_the_collection() -> None:
    shown = page()
    both = FusedRetriever(PageRetriever.over([shown], None), ReadableCollection())
    hits = await both.search(Query(text="ferries", k=2, mode="keyword"))
    assert {hit.passage.title for hit in hits} == {"Weir house", "Mill"}
    assert isinstance(both, DocumentReader)
    assert [each.text for each in await both.passages_of(shown.id)] == ["\n".join(LINES[:3]), LINES[3]]
    assert await both.passages_of("mill.md") == [Collection.passage]
    assert await both.passages_of("unknown.md") == []
    assert await FusedRetriever(PageRetriever.over([shown], None), Collection()).passages_of("mill.md") == []
