"""Import of triples from JSON Lines: {"id" of a passage, or its "title" and "text", and "triples"}."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from sleuth.tools.errors import UsageError
from sleuth.tools.json_lines import read_lines_as
from sleuth.tools.types import Triple, content_hash

Part = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=1000)]


class TripleLine(BaseModel):
    """One passage's triples."""

    model_config = ConfigDict(extra="ignore")

    id: str | None = None
    title: str = ""
    text: str | None = None
    triples: list[tuple[Part, Part, Part]]

    @model_validator(mode="after")
    def _belongs_somewhere(self) -> Self:
        if self.id is None and self.text is None:
            raise ValueError('it needs the "id" of a passage, or its "title" and "text"')
        return self


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """Triples by the fingerprints of their passages, and the numbers of lines and of lines with an unknown passage."""

    found: Mapping[str, list[Triple]]
    lines: int
    unknown: int


def read_triples(path: Path, fingerprints: Mapping[str, str]) -> Imported:
    """Read a file for passages with these fingerprints by id; merge several lines of one passage.

    Raises:
        UsageError: the file or a line of it is invalid, or no line belongs to a known passage.
    """
    stored = set(fingerprints.values())
    by_content: dict[str, dict[Triple, None]] = {}
    lines = unknown = 0
    for line in triple_lines(path):
        lines += 1
        mark = fingerprints.get(line.id or "") or content_hash(f"{line.title}\0{line.text}")
        if mark in stored:
            by_content.setdefault(mark, {}).update(dict.fromkeys(line.triples))
        else:
            unknown += 1
    if not by_content:
        raise UsageError(f"{path}: none of {lines} lines belongs to a passage of the collection; nothing is changed.")
    return Imported(found={mark: list(those) for mark, those in by_content.items()}, lines=lines, unknown=unknown)


def triple_lines(path: Path) -> Iterator[TripleLine]:
    """Yield the lines of a file, gzipped or not; raise UsageError with the number of an invalid line."""
    form = 'A line is {"id": "PASSAGE", "triples": [["subject", "predicate", "object"], …]}; nothing is changed.'
    return (line for _, line in read_lines_as(TripleLine, path, form=form))
