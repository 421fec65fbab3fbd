"""Evaluation questions from the feedback of people: runs with a rating, as lines of a question file."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from sleuth.graphs.persistence.run_filter import RunFilter
from sleuth.graphs.runs.service import RunService
from sleuth.studio.evaluation.run_folder import append_line
from sleuth.tools.errors import RunError, UsageError

WITH_GOLD, WITHOUT_GOLD = "good_answer", "bad_answer"
"""Types of the questions: the answer is gold, or a person has to add one after reading the comment."""


async def export_feedback(runs: RunService, path: Path) -> tuple[list[dict[str, Any]], int]:
    """Append the rated runs that a question file does not contain yet; its lines are not changed.

    Args:
        runs: the runs of one owner.
        path: a JSON Lines file; it is created if it is missing.

    Returns:
        The added lines, and the number of those that were there before.

    Raises:
        UsageError: the file cannot be read, or contains something else.
        StoreError: it cannot be written.
    """
    ids = _ids_in(path)
    added = [row async for row in _questions(runs) if row["id"] not in ids]
    for row in added:
        append_line(path, row)
    return added, len(ids)


async def _questions(runs: RunService) -> AsyncIterator[dict[str, Any]]:
    """Yield a question for each run with a good rating, or with a bad one and a comment; the oldest first."""
    for thread in reversed(await runs.store.threads.list_newest(RunFilter(with_subruns=False, with_empty=False))):
        feedback = thread.feedback
        rating, comment = feedback.get("rating"), str(feedback.get("comment", "")).strip()
        if rating != "up" and not (rating == "down" and comment):
            continue
        try:
            answer = await runs.answer(thread.id)
        except RunError:  # it was forked or resumed after the rating
            continue
        about = {"id": thread.id, "question": answer.question, "method": thread.method, "comment": comment}
        accepted = {"answered": answer.text, "unknown": "", "refused": ""}.get(answer.status)
        if rating == "up" and accepted is not None:
            passages = [citation["passage"] for citation in answer.citations if citation["passage"]]
            yield {**about, "type": WITH_GOLD, "answer": accepted, "gold_ids": list(dict.fromkeys(passages))}
        else:
            yield {**about, "type": WITHOUT_GOLD, "rejected_answer": answer.text}


def _ids_in(path: Path) -> set[str]:
    if not path.exists():
        return set()
    try:
        rows = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
        return {str(row["id"]) for row in rows}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UsageError(f"{path} is not a file of questions with ids: {error}. Choose another with --out.") from None
