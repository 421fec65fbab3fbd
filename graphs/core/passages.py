"""Passages as a run found them, and their form in the archive."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from sleuth.graphs.core.answer import RetrievalPath
from sleuth.tools.storage import Archive
from sleuth.tools.types import Passage


async def archive_passages(archive: Archive, passages: Iterable[Passage]) -> list[str]:
    """Archive passages as they are now, and return their references."""
    return await archive.keep([serialize_passage(passage) for passage in passages])


def serialize_passage(passage: Passage) -> str:
    """Return a passage in the form of the archive."""
    added = [name for name in ("way", "newer", "location", "places") if not getattr(passage, name, None)]
    kept = {name: value for name, value in asdict(passage).items() if name not in added}
    return json.dumps(kept, ensure_ascii=False, sort_keys=True)


def deserialize_passage(record: str) -> Passage:
    """Return the passage from the form of the archive."""
    kept = json.loads(record)
    return RetrievedPassage(**kept) if kept.keys() & {"way", "newer"} else Passage(**kept)


@dataclass(frozen=True, kw_only=True, slots=True)
class RetrievedPassage(Passage):
    """A passage with what its search has found out about it.

    way: the path if graph search reached it along a name rather than by its own words. newer: the newest version of its
    document, by its id, if it is an older one.
    """

    way: RetrievalPath | None = None
    newer: str = ""
