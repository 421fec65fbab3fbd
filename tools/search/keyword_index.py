"""The keyword index: BM25 over word stems, by tantivy, in one folder per collection.

All methods block: call them in a thread.
"""

import math
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import TypeAlias

import tantivy

from sleuth.tools.search.index import Index
from sleuth.tools.text.language import ENGLISH, STEMMED_LANGUAGES, KeywordTerms, find_terms, question_stems, stems
from sleuth.tools.types import Passage

LAYOUT = 2
"""Version of the index; incremented when the same passage gives other terms, which rebuilds the index."""

_STEMS = "stems"  # the name of a tokenizer that splits stems at spaces
_WRITER_BYTES = 64 * 1024 * 1024
# The title is part of the text already; this is the additional weight of a word in it.
_TITLE_BOOST = 0.25
# A question has a few dozen different words; a pasted book is cut, so that one query cannot block the others.
_MOST_TERMS = 512
_REMEMBERED = 1 << 14


FindTerms: TypeAlias = Callable[[Sequence[Passage]], Sequence[KeywordTerms]]


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("language", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name=_STEMS)
    builder.add_text_field("text", tokenizer_name=_STEMS)
    return builder.build()


class KeywordIndex(Index):
    """Keywords of one collection's passages."""

    name = "keyword index"
    _place: Path
    _languages: Sequence[str]

    def __init__(self, folder: Path, find_terms: FindTerms = find_terms) -> None:
        self._place = folder
        self._find_terms = find_terms
        # Graph search needs the stems of the same sentences for one question after the other.
        self._stems = lru_cache(maxsize=_REMEMBERED)(stems)
        self._schema = _schema()
        self.refresh()

    def close(self) -> None:
        """Do nothing: no resource stays open between calls."""

    def refresh(self) -> None:
        """Load the files, with the changes of other processes; those of another layout are deleted."""
        with self._storing("opened"):
            is_new = self._number("layout") != LAYOUT
            if is_new and self._place.exists():
                shutil.rmtree(self._place)  # the index is rebuilt from the catalogue
            self._place.mkdir(parents=True, exist_ok=True)
            index = tantivy.Index(self._schema, path=str(self._place))
        if is_new:
            self._remember(layout=LAYOUT)
        self._open(index)

    def apply(self, *, upsert: Sequence[Passage], delete: Sequence[str]) -> None:
        """Add and remove passages; repeating it changes nothing."""
        analyzed = self._find_terms(upsert)
        with self._writing() as writer:
            for id_ in [*delete, *(passage.id for passage in upsert)]:
                writer.delete_documents_by_term("id", id_)
            for passage, terms in zip(upsert, analyzed, strict=True):
                writer.add_document(_as_document(passage, terms))

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
        words, allowed, passages = self.question_stems(text), self._allowed, self.count()
        if allowed is None:
            return self._search(words, k)
        if len(allowed) ** 2 < 2 * k * passages:
            return self._search(words, k, only=allowed)
        depth = round(1.5 * k * passages / len(allowed)) + 1
        return search_deeper(partial(self._search, words), k, allowed, depth=depth)

    def stems(self, text: str, language: str) -> Sequence[str]:
        """Return the stems of a passage's text in the passage's language; callers must not modify them."""
        return self._stems(text, language)

    def question_stems(self, text: str) -> Mapping[str, Sequence[str]]:
        """Return the stems of a question in the languages of the passages, by the stem in the question's language."""
        return question_stems(text, self.languages())

    def languages(self) -> Sequence[str]:
        """Return the languages of the passages, the most frequent one first; English if there are no passages."""
        if not self._languages:
            counts = {each: self.frequency(each, field="language") for each in STEMMED_LANGUAGES}
            present = filter(counts.__getitem__, STEMMED_LANGUAGES)
            self._languages = sorted(present, key=lambda each: (-counts[each], each)) or [ENGLISH]
        return self._languages

    def frequency(self, term: str, *, field: str = "text") -> int:
        """Return the number of passages that contain a word with this stem, or another term in a field.

        The frequency that tantivy stores still counts deleted passages.
        """
        with self._storing("read"):
            query = tantivy.Query.term_query(self._schema, field, term)
            result = self._index.searcher().search(query, 1, count=True)
            return int(result.count)  # type: ignore[attr-defined]  # the stubs leave it out

    def _search(
        self, words: Mapping[str, Sequence[str]], k: int, *, only: Collection[str] | None = None
    ) -> list[tuple[str, float]]:
        if not words or not k:
            return []
        query = _any([clause for stems in list(words.values())[:_MOST_TERMS] for clause in self._match(stems)])
        if only is not None:  # a clause that adds nothing to the scores
            among = tantivy.Query.const_score_query(tantivy.Query.term_set_query(self._schema, "id", list(only)), 0.0)
            query = tantivy.Query.boolean_query([(tantivy.Occur.Must, query), (tantivy.Occur.Must, among)])
        searcher = self._index.searcher()
        with self._storing("read"):
            hits = searcher.search(query, k).hits
            scored = [(str(searcher.doc(address)["id"][0]), float(score)) for score, address in hits]
        return sorted(scored, key=lambda hit: (-hit[1], hit[0]))

    def _match(self, stems: Sequence[str]) -> Iterator[tantivy.Query]:
        """Yield a query for each stem of a word.

        The word is as rare as all its stems together; BM25 would favor the language with few passages.
        """
        weights = [1.0]
        if len(stems) > 1:
            counts, passages = list(map(self.frequency, stems)), self.count()
            rarity = inverse_frequency(passages, sum(counts))
            weights = [rarity / inverse_frequency(passages, each) for each in counts]
        for stem, weight in zip(stems, weights, strict=True):
            title = tantivy.Query.boost_query(tantivy.Query.term_query(self._schema, "title", stem), _TITLE_BOOST)
            both = _any([tantivy.Query.term_query(self._schema, "text", stem), title])
            yield both if weight == 1.0 else tantivy.Query.boost_query(both, weight)

    def _open(self, index: tantivy.Index) -> None:
        index.register_tokenizer(_STEMS, tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build())
        index.config_reader("manual")
        self._index = index
        self._languages = ()

    def _number(self, name: str) -> int:
        try:
            return int((self._place / name).read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return 0

    def _remember(self, **values: int) -> None:
        with self._storing("written"):
            for name, value in values.items():
                draft = self._place / f"{name}.new"
                draft.write_text(str(value), encoding="ascii")
                draft.replace(self._place / name)

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
            self._languages = ()


class MemoryKeywords(KeywordIndex):
    """An in-memory keyword index of a few passages."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._place = Path()
        self._find_terms = find_terms
        self._schema = _schema()
        self._open(tantivy.Index(self._schema))
        self.apply(upsert=passages, delete=[])


def search_deeper(
    search: Callable[[int], list[tuple[str, float]]], k: int, allowed: Collection[str], *, depth: int
) -> list[tuple[str, float]]:
    """Return the best `k` hits in `allowed` of a search without a filter, which begins with `depth` hits."""
    while True:
        hits = search(depth)
        allowed_hits = [hit for hit in hits if hit[0] in allowed]
        if len(allowed_hits) >= k or len(hits) < depth:
            return allowed_hits[:k]
        depth *= 4


def inverse_frequency(passages: int, frequency: int) -> float:
    """Return BM25's inverse document frequency."""
    return math.log(1.0 + (passages - frequency + 0.5) / (frequency + 0.5))


def _any(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _as_document(passage: Passage, terms: KeywordTerms) -> tantivy.Document:
    document = tantivy.Document()
    document.add_text("id", passage.id)
    document.add_text("language", terms.language)
    document.add_text("title", terms.title)
    document.add_text("text", terms.text)
    return document
