"""The folder of an evaluation: its plan, its results so far, its report; one process at a time writes it."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from sleuth.tools.errors import StoreError, UsageError

PLAN = "plan.json"
REPORT = "report.json"


def settle_plan(folder: Path, plan: Mapping[str, Any]) -> None:
    """Store the plan of the evaluation; in a folder that has a plan, check that it is the same. Blocks.

    Raises:
        UsageError: the folder holds another evaluation; names what differs.
    """
    path, new = folder / PLAN, json.loads(json.dumps(plan))
    if not path.exists():
        write(path, json.dumps(new, indent=2, ensure_ascii=False) + "\n")
        return
    stored = read_json(path)
    if differing := sorted(key for key in {*new, *stored} if new.get(key) != stored.get(key)):
        raise UsageError(
            f"{folder} holds another evaluation, which differs in: {', '.join(differing)}. "
            "Give --out another folder, or remove this one."
        )


def write(path: Path, text: str) -> None:
    """Replace a file atomically: a reader sees the old one or the new one. Blocks."""
    fresh = path.with_name(f".{path.name}-{uuid4().hex[:8]}")
    try:
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise StoreError(
            f"{path} cannot be written: {error}. Free some space, or give --out another folder."
        ) from error


def write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a file with one JSON value per line; create its folder if it is missing. Blocks."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object of an evaluation's folder; raise UsageError if it is missing or damaged."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None


def read_lines(path: Path, *, repair: bool = False) -> list[dict[str, Any]]:
    """Return the rows of a file of JSON lines, none if there is no file; a last line that a kill cut off is left out.

    Args:
        path: the file.
        repair: also remove the cut line from the file, so that rows can be appended.
    """
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data.rfind(b"\n") + 1
    if repair:
        os.truncate(path, whole)
    return [json.loads(line) for line in data[:whole].splitlines()]


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Append a row to a file of JSON lines.

    Raises:
        StoreError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    except OSError as error:
        raise StoreError(
            f"{path} cannot be written: {error}. Check its folder and free some space, then rerun the same command."
        ) from error
