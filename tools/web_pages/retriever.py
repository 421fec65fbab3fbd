"""Passages of the pages attached to a question, and a retriever over them, so that any method can search them.

Texts are chunked as in the hybrid system (section 3.1): questions with the following sentences, others in threes.
"""

import asyncio
import re
import threading
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from sleuth.tools.documents.chunking import split
from sleuth.tools.search import GRAPH_MODES, DocumentReader, Query, Retriever
from sleuth.tools.search.keyword_index import MemoryKeywords
from sleuth.tools.search.retriever import Scored, fetch_depth, fuse
from sleuth.tools.search.vectors import Embedder, NoEmbedder, Vectors
from sleuth.tools.text.normalization import MAX_TITLE_CHARS
from sleuth.tools.text.tokenization import Span
from sleuth.tools.types import Hit, Passage
from sleuth.tools.web_pages.page import PageText

SENTENCE_CHARS = 200
"""The most of a sentence that the paper keeps (table 5)."""
CHUNK_CHARS = 3 * SENTENCE_CHARS
"""The most that a chunk may have (table 5)."""
TOGETHER = 3
"""Sentences in a chunk without a question."""

# The words of the paper's appendix B.
_ASKING = frozenset(
    {*("who", "what", "when", "where", "why", "how", "which", "whom", "whose"), *("is", "are", "was", "were")}
    | {*("can", "could", "do", "does", "did"), *("has", "have", "had"), *("will", "would", "should")}
)
_FIRST_WORD = re.compile(r"[^\W\d_]+")
_QUESTION_END = re.compile(r"[?？][\"'”’)\]]*\s*$")
_TABLE_ID = "#table-"


class _Piece(NamedTuple):
    start: int
    end: int
    asks: bool


def chunk(text: str, sentences: Sequence[Span], *, truncate: bool = False) -> list[Span]:
    """Group sentences into chunks of at most CHUNK_CHARS characters, each a span of the text.

    Args:
        text: the page's text.
        sentences: spans in order, without overlaps.
        truncate: drop what a sentence has beyond SENTENCE_CHARS, as the paper does; it is the last one of its chunk.
            By default a sentence longer than a chunk is cut, and the rest of it becomes a sentence.
    """
    pieces = [
        _Piece(*part, asks=part[0] == start and is_question(text[start:end]))
        for start, end in sentences
        for part in ([(start, min(end, start + SENTENCE_CHARS))] if truncate else _cut(text, start, end))
    ]
    spans: list[Span] = []
    at = 0
    while at < len(pieces):
        size = 1
        while at + size < len(pieces) and _belongs(text, pieces[at : at + size + 1]):
            size += 1
        spans.append((pieces[at].start, pieces[at + size - 1].end))
        at += size
    return spans


def _cut(text: str, start: int, end: int) -> list[Span]:
    """Return a sentence in parts within the limit, cut between words where there is a space in its latter half."""
    parts: list[Span] = []
    while end - start > CHUNK_CHARS:
        space = text.rfind(" ", start + CHUNK_CHARS // 2, start + CHUNK_CHARS + 1)
        stop = space if space > start else start + CHUNK_CHARS
        parts.append((start, stop))
        start = stop + (space > start)
    return [*parts, (start, end)] if start < end else parts


def _belongs(text: str, pieces: Sequence[_Piece]) -> bool:
    """Return whether the last of some pieces belongs to the chunk of the previous ones."""
    first, last, before = pieces[0], pieces[-1], pieces[-2]
    fits = last.end - first.start <= CHUNK_CHARS and not text[before.end : last.start].strip()
    return fits and (first.asks or (not last.asks and len(pieces) <= TOGETHER))


def is_question(sentence: str) -> bool:
    """Return whether it ends with a question mark, or begins with an interrogative or auxiliary word (appendix B)."""
    first = _FIRST_WORD.match(sentence.lstrip("\"'“‘¿([ "))
    return bool(_QUESTION_END.search(sentence)) or (first is not None and first[0].casefold() in _ASKING)


def text_passages(page: PageText, *, truncate: bool = False) -> list[Passage]:
    """Return a page's chunks, of truncated sentences if `truncate` is set; `start` and `end` are places in its text."""
    spans = chunk(page.text, page.sentences, truncate=truncate)
    return [_passage(page.id, page.name, page.text, start, end) for start, end in spans]


def table_passages(page: PageText) -> list[Passage]:
    """Return a page's tables, each as a document split between rows; the title repeats the header."""
    passages = []
    for number, table in enumerate(page.tables, start=1):
        header = table.markdown.partition("\n")[0].strip("| ")
        title = f"{page.name} ({table.caption or f'table {number}'}: {header})"[:MAX_TITLE_CHARS]
        document, spans = f"{page.id}{_TABLE_ID}{number}", split(table.markdown, "text/csv")
        passages += [_passage(document, title, table.markdown, start, end) for start, end in spans]
    return passages


def is_page_table(passage: Passage) -> bool:
    """Return whether a passage is one of `table_passages`; a piece of a long row does not look like a table."""
    return _TABLE_ID in passage.document_id


def _passage(document: str, title: str, text: str, start: int, end: int) -> Passage:
    id = f"{document}@{start}-{end}"
    return Passage(id=id, document_id=document, title=title, text=text[start:end], start=start, end=end)


class PageRetriever:
    """Keyword, dense and hybrid search over text chunks and tables of pages; graph search is hybrid here.

    Dense search compares the vectors of passages and query by their cosine (section 3.1). Without an embedder hybrid
    search uses keywords only, as in the collection.
    """

    def __init__(self, passages: Sequence[Passage], embedder: Embedder | None) -> None:
        self.passages = {passage.id: passage for passage in passages}
        self._embedder = embedder or NoEmbedder()
        self._has_embedder = embedder is not None
        self._turn = threading.Lock()

    @classmethod
    def over(cls, pages: Sequence[PageText], embedder: Embedder | None) -> "PageRetriever":
        """Return a retriever over all passages of the pages."""
        return cls([passage for page in pages for passage in (*text_passages(page), *table_passages(page))], embedder)

    async def search(self, query: Query) -> list[Hit]:
        """Return the best `query.k` passages, best first; raises UsageError for an empty question."""
        return await asyncio.to_thread(self._search, query.checked())

    async def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a page, in order; none if there is no such page."""
        return [passage for passage in self.passages.values() if passage.document_id == document_id]

    def _search(self, query: Query) -> list[Hit]:
        if not self.passages:
            return []
        lists: list[Scored] = []
        with self._turn:  # the indexes are made at the first search
            by_meaning = query.mode == "dense" or (query.mode in ("hybrid", *GRAPH_MODES) and self._has_embedder)
            lists += [self._dense(query.text)] if by_meaning else []
            lists += [self._words.search(query.text, fetch_depth(query.k))] if query.mode != "dense" else []
        return _hits(self.passages, fuse(lists) if len(lists) > 1 else lists[0], query.k)

    def _dense(self, text: str) -> Scored:
        cosines = self._vectors @ self._embedder.embed_query(text)
        ids = list(self.passages)
        return [(ids[at], float(cosines[at])) for at in np.argsort(-cosines, kind="stable")]

    @cached_property
    def _vectors(self) -> Vectors:
        return self._embedder.embed_passages([passage.text for passage in self.passages.values()])

    @cached_property
    def _words(self) -> MemoryKeywords:
        return MemoryKeywords(list(self.passages.values()))


class FusedRetriever:
    """A retriever that fuses the rankings of two others."""

    def __init__(self, first: Retriever, second: Retriever) -> None:
        self._both = (first, second)

    def replace_first(self, first: Retriever) -> "FusedRetriever":
        """Return a retriever that fuses the rankings of `first` and of the second one."""
        return FusedRetriever(first, self._both[1])

    async def search(self, query: Query) -> list[Hit]:
        """Return the best `query.k` passages of both, best first."""
        results = await asyncio.gather(*(retriever.search(query) for retriever in self._both))
        passages = {hit.passage.id: hit.passage for hits in results for hit in hits}
        return _hits(passages, fuse([[(hit.passage.id, hit.score) for hit in hits] for hits in results]), query.k)

    async def passages_of(self, document_id: str) -> list[Passage]:
        """Return the passages of a document of either retriever, in order."""
        readers = [retriever for retriever in self._both if isinstance(retriever, DocumentReader)]
        results = [await reader.passages_of(document_id) for reader in readers]
        return next((passages for passages in results if passages), [])


def _hits(passages: dict[str, Passage], ranked: Scored, k: int) -> list[Hit]:
    return [Hit(passage=passages[id], score=score, rank=rank) for rank, (id, score) in enumerate(ranked[:k], start=1)]
