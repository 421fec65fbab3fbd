import pytest
from hashing_embedder import HashingEmbedder

from sleuth.tools.errors import UsageError
from sleuth.tools.search.retriever import DocumentReader, Mode, Query
from sleuth.tools.sources.web_pages.page import PageText, Table
from sleuth.tools.sources.web_pages.retriever import FusedRetriever, PageRetriever, table_passages, text_passages
from sleuth.tools.types import Hit, Passage

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
