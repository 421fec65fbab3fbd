"""Older versions among the documents of a collection.

Two files are versions of one document if their names differ only in a version and their texts are nearly the same.
Nothing is stored: the names are listed again after a change, texts are compared when a search finds one of them. All
methods block: call them in a thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise

from sleuth.tools.documents.versions import LEAST_SHARED, VersionedName, parse_name, shared_text
from sleuth.tools.storage import Catalogue

Base = tuple[str, ...]
Files = Sequence[tuple[VersionedName, str]]


class Versions:
    """Finds documents of which the collection has a newer version."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._head = -1
        self._files: Mapping[Base, Files] = {}
        self._newest: dict[Base, Mapping[str, str]] = {}

    def newest(self, document_ids: Iterable[str]) -> dict[str, str]:
        """Return the newest version, by its id, of those of these documents that are older versions."""
        if (head := self._catalogue.head()) != self._head:
            named = sorted((parse_name(source), id_) for id_, source in self._catalogue.files().items())
            self._files = {base: list(group) for base, group in groupby(named, key=lambda each: each[0].base)}
            self._newest, self._head = {}, head
        files, compared = self._files, self._newest
        found: dict[str, str] = {}
        for id_, source in self._catalogue.files(list(document_ids)).items():
            base = parse_name(source).base
            if base not in compared:
                compared[base] = self._compare(files.get(base, ()))
            if newest := compared[base].get(id_):
                found[id_] = newest
        return found

    def _compare(self, files: Files) -> dict[str, str]:
        """Compare the files of each version with those of the next one; the last version is newest."""
        versions = [[id_ for _, id_ in group] for _, group in groupby(files, key=lambda each: each[0])]
        newest: dict[str, str] = {}
        for older, later in reversed(list(pairwise(versions))):
            texts = {id_: self._catalogue.get_document(id_).text for id_ in (*older, *later)}
            for id_ in older:
                same = (each for each in later if shared_text(texts[id_], texts[each]) >= LEAST_SHARED)
                if (next_ := next(same, None)) is not None:
                    newest[id_] = newest.get(next_, next_)
        return newest
