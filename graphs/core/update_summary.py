"""Lines that describe the update of a node: for a terminal, and for a chat application that shows a run's progress."""

from collections.abc import Iterator, Mapping
from typing import Any

from sleuth.graphs.core.answer import Note


def summarize_update(update: Mapping[str, Any]) -> list[str]:
    """Return lines about the fields that several methods share; a method with further ones adds its own."""
    return list(_lines(update))


def _lines(update: Mapping[str, Any]) -> Iterator[str]:
    for key, step in (update.get("plan") or {}).items():
        yield f"{key}. {step['question']}"
    for round in (update.get("rounds") or {}).values():
        yield f"passages: {len(round['passages'])}" if round["passages"] else f"looks up: {round['query']}"
    for key, note in (update.get("notes") or {}).items():
        yield _note_line(key, note)
    if "evidence" in update:
        yield f"passages: {len(update['evidence'])}"
    for attempt in (update.get("attempts") or {}).values():
        yield f"answer tried: {attempt['answer'] or '–'}"
    if update.get("halted"):
        yield "the budget is spent"


def _note_line(key: str, note: Note | None) -> str:
    if note is None:
        return f"taken back: {key}"
    where = f" [{', '.join(note['passages'])}]" if note["passages"] else ""
    remark = f" ({note['remark']})" if note.get("remark") else ""
    return f"found: {note['finding'] or '–'}{where}{remark}"
