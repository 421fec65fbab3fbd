"""Passages as a run found them, and their form in the archive."""

import json
from dataclasses import asdict, dataclass

from sleuth.graphs.core.answer import RetrievalPath
from sleuth.tools.types import Passage


def serialize_passage(passage: Passage) -> str:
    """Return a passage in the form of the archive."""
    unset = [name for name in ("way", "location", "places") if not getattr(passage, name, None)]
    fields = {name: value for name, value in asdict(passage).items() if name not in unset}
    return json.dumps(fields, ensure_ascii=False, sort_keys=True)


def deserialize_passage(record: str) -> Passage:
    """Return the passage from the form of the archive."""
    fields = json.loads(record)
    return RetrievedPassage(**fields) if "way" in fields else Passage(**fields)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievedPassage(Passage):
    """A passage with the path by which graph search reached it along a name, rather than by its own words."""

    way: RetrievalPath | None = None
