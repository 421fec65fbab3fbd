"""Lines that describe the update of a node: for a terminal, and for a chat application that shows a run's progress."""

from collections.abc import Mapping
from typing import Any

from sleuth.graphs.core.answer import Note


def summarize_common(update: Mapping[str, Any]) -> list[str]:
    """Return lines about the fields that every method has: its notes, and a budget that is used up."""
    notes = [_summarize_note(key, note) for key, note in (update.get("notes") or {}).items()]
    return [*notes, *(["the budget is spent"] if update.get("halted") else [])]


def summarize_rounds(update: Mapping[str, Any]) -> list[str]:
    """Return a line for each search among the update's `rounds`: its query, then the number of its passages."""
    return [
        f"passages: {len(round['passages'])}" if round["passages"] else f"looks up: {round['query']}"
        for round in (update.get("rounds") or {}).values()
    ]


def summarize_evidence(update: Mapping[str, Any]) -> list[str]:
    """Return the number of passages in the update's `evidence`."""
    return [f"passages: {len(update['evidence'])}"] if "evidence" in update else []


def summarize_attempts(update: Mapping[str, Any]) -> list[str]:
    """Return a line for each answer among the update's `attempts`."""
    return [f"answer tried: {attempt['answer'] or '–'}" for attempt in (update.get("attempts") or {}).values()]


def summarize_plan(update: Mapping[str, Any]) -> list[str]:
    """Return a line for each step in the update's `plan`."""
    return [f"{key}. {step['question']}" for key, step in (update.get("plan") or {}).items()]


def _summarize_note(key: str, note: Note | None) -> str:
    if note is None:
        return f"taken back: {key}"
    where = f" [{', '.join(note['passages'])}]" if note["passages"] else ""
    remark = f" ({note['remark']})" if note.get("remark") else ""
    return f"found: {note['finding'] or '–'}{where}{remark}"
