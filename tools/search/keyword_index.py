"""The keyword index: BM25 over English word stems, by tantivy, in one folder per collection.

All methods block: call them in a thread.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import tantivy

from sleuth.tools.errors import StoreError
from sleuth.tools.types import Passage

_ANALYZER = "english"
_WRITER_BYTES = 64 * 1024 * 1024
# The title is part of the text already; this is the additional weight of a word in it.
_TITLE_BOOST = 0.25
# A question has a few dozen different words; a pasted book is cut, so that one query cannot block the others.
_MOST_TERMS = 512
_REMEMBERED = 1 << 14


def _analyzer() -> tantivy.TextAnalyzer:
    tokens = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    tokens = tokens.filter(tantivy.Filter.remove_long(80)).filter(tantivy.Filter.lowercase())
    return tokens.filter(tantivy.Filter.stopword("english")).filter(tantivy.Filter.stemmer("english")).build()


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name=_ANALYZER)
    builder.add_text_field("text", tokenizer_name=_ANALYZER)
    return builder.build()


class KeywordIndex:
    """Keywords of one collection's passages; stores its position in the catalogue's journal."""

    name = "keyword index"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._words = _analyzer()
        # Graph search needs the stems of the same sentences for one question after the other.
        self._stems = lru_cache(maxsize=_REMEMBERED)(self._words.analyze)
        self._schema = _schema()
        with self._storing("opened"):
            folder.mkdir(parents=True, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=str(folder))
        self._index.register_tokenizer(_ANALYZER, self._words)
        self._index.config_reader("manual")

    def close(self) -> None:
        """Do nothing: no resource stays open between calls."""

    def refresh(self, *, anew: bool) -> None:
        """Reload changes from other processes."""
        with self._storing("read"):
            self._index.reload()

    def applied(self) -> int:
        """Return the last journal number that this index contains."""
        return self._read("applied")

    def set_applied(self, seq: int) -> None:
        """Store the last journal number that this index contains."""
        self._write("applied", seq)

    def reached(self) -> int:
        """Return the last journal number that may be partly applied."""
        return max(self._read("reached"), self._read("applied"))

    def set_reached(self, seq: int) -> None:
        """Store the last journal number that may be partly applied."""
        self._write("reached", seq)

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Add and remove passages; repeating it changes nothing."""
        with self._writing() as writer:
            for id_ in [*delete, *(passage.id for passage in upsert)]:
                writer.delete_documents_by_term("id", id_)
            for passage in upsert:
                writer.add_document(_as_document(passage))

    def clear(self) -> None:
        """Delete all entries."""
        self.set_applied(0)
        with self._writing() as writer:
            writer.delete_all_documents()
        self.set_reached(0)

    def count(self) -> int:
        """Return the number of passages."""
        return int(self._index.searcher().num_docs)

    def ids(self) -> set[str]:
        """Return the ids of all passages."""
        searcher = self._index.searcher()
        with self._storing("read"):
            hits = searcher.search(tantivy.Query.all_query(), max(1, searcher.num_docs)).hits
            return {searcher.doc(address)["id"][0] for _, address in hits}

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the best passages for any text, as ids with BM25 scores, best first."""
        with self._storing("read"):
            return _search(self._index, self._schema, self._words.analyze(text), k)

    def stems(self, text: str) -> Sequence[str]:
        """Return the stems of a text in order; callers must not modify them."""
        return self._stems(text)

    def frequency(self, stem: str) -> int:
        """Return the number of passages that contain a word with this stem."""
        query = tantivy.Query.term_query(self._schema, "text", stem)
        # The index's own document frequency still counts what was deleted.
        with self._storing("read"):
            found = self._index.searcher().search(query, 1, count=True)
        return int(found.count)  # type: ignore[attr-defined]  # the stubs leave it out

    def _read(self, name: str) -> int:
        try:
            return int((self._folder / name).read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def _write(self, name: str, seq: int) -> None:
        draft = self._folder / f"{name}.new"
        with self._storing("written"):
            draft.write_text(str(seq), encoding="ascii")
            draft.replace(self._folder / name)

    @contextmanager
    def _writing(self) -> Iterator[tantivy.IndexWriter]:
        """Commit all changes together."""
        with self._storing("written"):
            writer = self._index.writer(_WRITER_BYTES, num_threads=1)
            # A killed writer leaves files that block the same change, since it writes the same names.
            writer.garbage_collect_files()
            yield writer
            writer.commit()
            writer.wait_merging_threads()
            self._index.reload()

    @contextmanager
    def _storing(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:  # tantivy raises ValueError for everything
            raise StoreError(
                f"The keyword index in {self._folder} cannot be {what}: {error}. Check the disk's free space. "
                "It is derived from the documents: delete that folder to rebuild it."
            ) from error


class MemoryKeywords:
    """An in-memory keyword index of a few passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._words = _analyzer()
        self._schema = _schema()
        self._index = tantivy.Index(self._schema)
        self._index.register_tokenizer(_ANALYZER, self._words)
        writer = self._index.writer(_WRITER_BYTES, num_threads=1)
        for passage in passages:
            writer.add_document(_as_document(passage))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def search(self, text: str, k: int) -> list[tuple[str, float]]:
        """Return the best passages for any text, as ids with BM25 scores, best first."""
        return _search(self._index, self._schema, self._words.analyze(text), k)


def _search(index: tantivy.Index, schema: tantivy.Schema, words: Sequence[str], k: int) -> list[tuple[str, float]]:
    different = list(dict.fromkeys(words))[:_MOST_TERMS]
    if not different:
        return []
    searcher = index.searcher()
    wanted = tantivy.Query.boolean_query([(tantivy.Occur.Should, _match(schema, word)) for word in different])
    hits = searcher.search(wanted, k).hits
    found = [(str(searcher.doc(address)["id"][0]), float(score)) for score, address in hits]
    return sorted(found, key=lambda hit: (-hit[1], hit[0]))


def _match(schema: tantivy.Schema, word: str) -> tantivy.Query:
    title = tantivy.Query.boost_query(tantivy.Query.term_query(schema, "title", word), _TITLE_BOOST)
    clauses = [tantivy.Query.term_query(schema, "text", word), title]
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, clause) for clause in clauses])


def _as_document(passage: Passage) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("id", passage.id)
    document.add_text("title", passage.title)
    document.add_text("text", f"{passage.title}. {passage.text}")
    return document
