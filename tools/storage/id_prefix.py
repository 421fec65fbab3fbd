"""Ids that a person abbreviates to a prefix."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any

from sqlalchemy import Column, Select

from sleuth.tools.errors import UsageError

MAX_CANDIDATES = 1000
"""Ids with a prefix that stores return; more are ambiguous anyway."""

MAX_SIMILAR = 100
"""Ids that are compared with an unknown one, to suggest the most similar: each takes up to a millisecond."""

_SHOWN = 5


MIN_SHOWN = 8
"""Characters of an id that are shown at least."""


def shorten_ids(ids: Sequence[str]) -> dict[str, str]:
    """Return the beginning of each id that no other one of them has, of at least MIN_SHOWN characters."""
    ordered = sorted(set(ids))
    shortened = {}
    for before, id, after in zip(["", *ordered], ordered, [*ordered[1:], ""], strict=False):
        shared = max(_shared(id, other) for other in (before, after))
        shortened[id] = id[: max(MIN_SHOWN, shared + 1)]
    return shortened


def _shared(id: str, other: str) -> int:
    """Return the number of characters with which both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(id, other, strict=False)))


def select_similar(query: Select[Any], column: Column[str], id: str) -> tuple[Select[Any], Select[Any]]:
    """Return queries for the ids before and after an unknown one: they share its beginning."""
    few = query.limit(MAX_SIMILAR // 2)
    return few.where(column < id).order_by(column.desc()), few.where(column > id).order_by(column)


def complete_id(kind: str, prefix: str, ids: Iterable[str]) -> str | None:
    """Return the id with this prefix, the prefix itself if it is an id; None if no id has it.

    Args:
        kind: the kind of the ids in messages, such as "thread".
        prefix: an id, or the beginning of one.
        ids: known ids; a parent and the ids below it, separated by a full stop, count as the parent.

    Raises:
        UsageError: several ids have the prefix, or it is empty.
    """
    if not prefix:
        raise UsageError(f"The id of the {kind} is empty. Check shell variables.")
    matches: list[str] = []
    for id in sorted(each for each in ids if each.startswith(prefix)):
        if id == prefix:
            return id
        if not any(id.startswith(f"{other}.") for other in matches):
            matches.append(id)
    if len(matches) > 1:
        more = ", …" if len(matches) > _SHOWN else ""
        raise UsageError(
            f"Several {kind}s begin with {prefix[:200]!r}: {', '.join(matches[:_SHOWN])}{more}. Give more of the id."
        )
    return matches[0] if matches else None
