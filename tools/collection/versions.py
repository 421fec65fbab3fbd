"""Older versions among the documents of a collection.

Two files are versions of one document if their names differ only in a version and their texts are nearly the same.
Nothing is stored: the names are listed again after a change, texts are compared when a search finds one of them. All
methods block: call them in a thread.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from sleuth.tools.documents.versions import LEAST_SHARED, VersionedName, parse_name, shared_text
from sleuth.tools.storage import Catalogue

Base = tuple[str, ...]


@dataclass(kw_only=True, slots=True)
class _Names:
    """The files of a collection at one point of the journal, by their names without the version; oldest first."""

    head: int
    files: Mapping[Base, Sequence[tuple[VersionedName, str]]]
    newest: dict[Base, Mapping[str, str]] = field(default_factory=dict)


class Versions:
    """Finds documents of which the collection has a newer version."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._names = _Names(head=-1, files={})

    def newest(self, document_ids: Iterable[str]) -> dict[str, str]:
        """Return the newest version, by its id, of those of these documents that are older versions."""
        names, head = self._names, self._catalogue.head()
        if names.head != head:
            named = sorted((parse_name(source), id_) for id_, source in self._catalogue.files().items())
            files = {base: list(group) for base, group in groupby(named, key=lambda each: each[0].base)}
            self._names = names = _Names(head=head, files=files)
        found: dict[str, str] = {}
        for id_, source in self._catalogue.files(list(document_ids)).items():
            base = parse_name(source).base
            if base not in names.newest:
                names.newest[base] = self._compare(names.files.get(base, ()))
            if newest := names.newest[base].get(id_):
                found[id_] = newest
        return found

    def _compare(self, files: Sequence[tuple[VersionedName, str]]) -> dict[str, str]:
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
