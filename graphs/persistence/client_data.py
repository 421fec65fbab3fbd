"""JSON that clients of the server store with a thread: its limits, and conditions on its items."""

import json
from typing import Any

from sqlalchemy import Column, ColumnElement, cast, func, literal, select
from sqlalchemy.dialects.postgresql import JSONB

from sleuth.tools.errors import UsageError
from sleuth.tools.json_values import check_json

MAX_METADATA = 16_384
"""Characters of metadata or feedback that a thread stores."""

MAX_METADATA_OF_OWNER = 16 << 20
"""Characters of the metadata of all threads of an owner."""


def to_stored_json(value: object) -> str:
    """Return JSON in the one form in which equal values are equal texts.

    Raises:
        UsageError: the databases cannot store it, or it is too long.
    """
    check_json(value)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    if len(text) > MAX_METADATA:
        raise UsageError(
            f"A thread stores {MAX_METADATA:,} characters of metadata or feedback, these are {len(text):,}."
        )
    return text


def has_item(column: Column[str], key: str, value: Any, *, dialect: str) -> ColumnElement[bool]:  # noqa: ANN401 - JSON
    """Return the condition that a column's JSON object has an item."""
    wanted = to_stored_json(value)
    if dialect == "postgresql":
        return cast(column, JSONB)[key] == cast(literal(wanted), JSONB)
    item = func.json_each(column).table_valued("key", "value", "type")
    same: list[ColumnElement[bool]] = [item.c.key == key]
    match value:
        case None | bool():
            same.append(item.c.type == wanted)
        case dict() | list():
            same += [item.c.type.in_(("object", "array")), item.c.value == wanted]
        case str():
            same += [item.c.type == "text", item.c.value == value]
        case _:
            same += [item.c.type.in_(("integer", "real")), item.c.value == value]
    return select(literal(1)).select_from(item).where(*same).exists()
