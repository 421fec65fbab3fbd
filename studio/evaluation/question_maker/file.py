"""The file of written questions, and next to it that of dropped candidates: both grow line by line, and are resumed."""

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sleuth.studio.evaluation.scoring import normalise
from sleuth.tools.errors import UsageError
from sleuth.tools.types import Passage

Kind = Literal["single", "multi", "unanswerable"]

_STARTS = ('{"id": "single-', '{"id": "multi-', '{"id": "unanswerable-', '{"candidate": "')
"""What the lines of both files start with: only such a line is cut off where a kill has truncated it."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """Passages for one question; `name` connects those of a question in two steps."""

    kind: Kind
    passages: tuple[Passage, ...]
    name: str = ""

    @property
    def key(self) -> str:
        """Identifies the candidate in the file of dropped ones."""
        return "+".join([self.kind, *(passage.id for passage in self.passages)])


@dataclass(frozen=True, kw_only=True)
class Made:
    """A question as a line of a question file, or the reason why a candidate was dropped."""

    candidate: Candidate
    row: Mapping[str, Any] | None = None
    reason: str = ""
    calls: int = 0
    tokens: int = 0


class WrittenQuestions:
    """The questions made so far, and next to them the candidates that were dropped: a rerun continues there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shortfalls: dict[Kind, str] = {}
        """Why there are fewer questions of a kind than wanted."""
        self.dropped_path = path.with_suffix(".dropped.jsonl")
        self.rows = _lines(path)
        self.dropped = _lines(self.dropped_path)

    def tried(self) -> set[str]:
        """Return the keys of all candidates that are done."""
        return {str(row["candidate"]) for row in self.dropped} | {str(row.get("made_from")) for row in self.rows}

    def count(self, kind: Kind) -> int:
        """Return the number of questions of a kind."""
        return sum(row.get("type") == kind for row in self.rows)

    def has(self, question: str) -> bool:
        """Return whether the question is there already."""
        return any(normalise(str(row["question"])) == normalise(question) for row in self.rows)

    def add(self, made: Made) -> None:
        """Append a question or a dropped candidate."""
        if made.row is not None:
            _append(self.path, made.row)
            self.rows.append(dict(made.row))
        else:
            row = {"candidate": made.candidate.key, "reason": made.reason}
            _append(self.dropped_path, row)
            self.dropped.append(row)

    def reasons(self) -> Counter[str]:
        """Return how many candidates were dropped for each reason."""
        return Counter(str(row["reason"]) for row in self.dropped)


def _lines(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a file, and cut off a last line that a kill has truncated; no other file is changed."""
    if not path.exists():
        return []
    try:
        whole, end, cut = path.read_bytes().rpartition(b"\n")
        lines = whole.decode().split("\n") if end else []
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}. Choose another file with --out.") from None
    rows = [_row_of(line, f"{path}, line {number}") for number, line in enumerate(lines, 1)]
    last = cut.decode(errors="replace")
    if last and _is_json(last):
        rows.append(_row_of(last, f"{path}, its last line"))
        _write(path, "\n")
    elif last and any(last.startswith(start) or start.startswith(last) for start in _STARTS):
        os.truncate(path, len(whole + end))
    elif last:
        raise _not_ours(f"{path}, its last line")
    return rows


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def _row_of(line: str, place: str) -> dict[str, Any]:
    row = json.loads(line) if _is_json(line) else None
    if not isinstance(row, dict) or not ("made_from" in row or "candidate" in row):
        raise _not_ours(place)
    return row


def _not_ours(place: str) -> UsageError:
    return UsageError(f"{place}, was not made by this command. Choose another file with --out.")


def _append(path: Path, row: Mapping[str, Any]) -> None:
    _write(path, json.dumps(row, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}. Choose another file with --out.") from None
