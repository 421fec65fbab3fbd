"""Evaluation questions from the feedback of people: runs with a rating, as lines of a question file."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.persistence import RunFilter, Thread
from sleuth.graphs.runs import RunService
from sleuth.tools.errors import RunError, UsageError

WITH_GOLD, WITHOUT_GOLD = "good_answer", "bad_answer"
"""Types of the questions: the answer is gold, or a person has to add one after reading the comment."""


@dataclass(frozen=True, kw_only=True)
class FeedbackExport:
    """Lines of a question file: those that were added, and the number of those that were there before."""

    added: list[dict[str, Any]] = field(default_factory=list)
    kept: int = 0

    def count(self, type_: str) -> int:
        """Return the number of added questions of a type."""
        return sum(row["type"] == type_ for row in self.added)


async def export_feedback(runs: RunService, path: Path) -> FeedbackExport:
    """Append the rated runs that a question file does not contain yet; its lines are not changed.

    Args:
        runs: the runs of one owner.
        path: a JSON Lines file; it is created if it is missing.

    Raises:
        UsageError: the file cannot be read or written, or contains something else.
    """
    known = _ids_in(path)
    added = [row async for row in _questions(runs) if row["id"] not in known]
    if not added:
        return FeedbackExport(kept=len(known))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as out:
            out.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in added)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}. Choose another file with --out.") from None
    return FeedbackExport(added=added, kept=len(known))


async def _questions(runs: RunService) -> AsyncIterator[dict[str, Any]]:
    """Yield a question for each run with a good rating, or with a bad one and a comment; the oldest first."""
    for thread in reversed(await runs.store.threads.list_newest(RunFilter(with_subruns=False))):
        feedback = thread.options.feedback
        rating, comment = feedback.get("rating"), str(feedback.get("comment", "")).strip()
        if rating != "up" and not (rating == "down" and comment):
            continue
        try:
            answer = await runs.answer(thread.id)
        except RunError:  # it was forked or resumed after the rating
            continue
        yield _question(thread, answer, comment, is_good=rating == "up")


def _question(thread: Thread, answer: Answer, comment: str, *, is_good: bool) -> dict[str, Any]:
    """Return a line of a question file. A good answer is gold with its citations; a bad one is only shown."""
    about = {"id": thread.id, "question": answer.question, "method": thread.method, "comment": comment}
    accepted = {"answered": answer.text, "unknown": "", "refused": ""}.get(answer.status)
    if not is_good or accepted is None:
        return {**about, "type": WITHOUT_GOLD, "rejected_answer": answer.text}
    passages = [citation["passage"] for citation in answer.citations if citation["passage"]]
    return {**about, "type": WITH_GOLD, "answer": accepted, "gold_ids": list(dict.fromkeys(passages))}


def _ids_in(path: Path) -> set[str]:
    if not path.exists():
        return set()
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        return {str(row["id"]) for row in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} is not a file of questions with ids: {error}. Choose another with --out.") from None
