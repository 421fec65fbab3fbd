"""Results of all runs: one line each, appended as runs end, read again after an interruption, and summarized.

The stored runs are the source of truth: a lost line is created again from its run.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from sleuth.graphs.core.answer import Cost, Support, total_cost
from sleuth.studio.evaluation.data import GoldQuestion, System
from sleuth.studio.evaluation.run_folder import append_line, read_lines
from sleuth.studio.evaluation.scoring import Scores, answer_scores, citation_scores, color_scores, summarize

RESULTS = "results.jsonl"

QUALITY = {
    "f1": ("F1", "Words that the answer shares with the right one, as in SQuAD 2.0; 0 for a wrong refusal."),
    "em": ("EM", "Answers that equal a right one, apart from case, articles and punctuation."),
    "contained": ("contained", "Answers that contain a right one."),
    "acc_lm": ("Acc-LM", "Answers that the judge model accepts."),
    "crag": ("CRAG score", "+1 for a right answer, 0 for a refusal, −1 for a wrong answer, as percent."),
    "refused": ("refused", "Runs that ended without an answer."),
}
EVIDENCE = {
    "answered_em": ("EM of answered", "EM over the questions that were not refused."),
    "answered_f1": ("F1 of answered", "F1 over the questions that were not refused."),
    "green": ("green", "Answers that their sources support well."),
    "green_right": ("right of green", "Green answers that contain a right one."),
    "amber": ("amber", "Answers that their sources support only weakly."),
    "amber_right": ("right of amber", "Amber answers that contain a right one."),
    "support": ("support", "Answers with a citation of a gold passage."),
    "citation_precision": ("citation precision", "Citations that are of gold passages."),
    "citation_recall": ("citation recall", "Gold passages that are cited."),
    "quoted": ("answer quoted", "Answers, other than yes and no, that a citation contains verbatim."),
    "faithfulness": ("faithfulness", "Probability by the evidence checker that the cited passages support the answer."),
    "answerability": (
        "answerability",
        "Probability by the evidence checker that the cited passages answer the question.",
    ),
    "shown": ("gold shown", "Gold passages that were in any prompt of the run."),
    "all_shown": ("all gold shown", "Questions of which all gold passages were in a prompt of the run."),
}
COST = {
    "calls": ("calls", "Model calls per question."),
    "tokens": ("tokens", "Prompt and completion tokens per question; cached ones count in full."),
    "prompt_tokens": ("prompt", "Prompt tokens."),
    "cached_tokens": ("of it cached", "Prompt tokens that the server had cached."),
    "completion_tokens": ("completion", "Completion tokens."),
    "model_seconds": ("model seconds", "Seconds of all model calls together."),
    "seconds": ("seconds", "Seconds by the clock."),
}
METRICS = {**QUALITY, **EVIDENCE, **COST}
"""Heading and meaning of each metric."""
COMPARED = ("f1", "em", "tokens")


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """One run's outcome, and a line of `results.jsonl`.

    `cited` has the ids of each cited passage and its document, `shown` are gold ids. `seconds` is the run's
    wall-clock time; None without a model server. `quoted`: a citation contains the answer. `checked`: what the evidence
    checker gives. `judged`: a judge model's opinion.

    A failed run has the status "failed" and its error in `problem`; it counts as a wrong answer until the same command
    has retried it.
    """

    thread: str
    system: str
    question: str
    status: str
    text: str = ""
    cited: Sequence[Sequence[str]] = ()
    quoted: float | None = None
    checked: Support | None = None
    shown: Sequence[str] = ()
    cost: Cost = field(default_factory=lambda: total_cost({}))
    seconds: float | None = None
    warnings: int = 0
    problem: str = ""
    judged: bool | None = None
    scores: Mapping[str, float | None] = field(default_factory=dict)

    def scored(self, question: GoldQuestion) -> "Result":
        """Return the result with every metric."""
        answered, checked, gold = self.status == "answered", self.checked, set(question.gold)
        shown_share = len(gold & set(self.shown)) / len(gold) if gold else None
        scores = answer_scores(self.status, self.text, question.answers, self.judged)
        scores |= {
            **color_scores(self.status, checked, scores.get("contained")),
            **citation_scores(self.cited, question.gold, answered=answered),
            "quoted": self.quoted if answered else None,
            "faithfulness": checked["score"] if checked else None,
            "answerability": checked["answerable"] if checked else None,
            "shown": shown_share,
            "all_shown": None if shown_share is None else float(shown_share == 1),
            "seconds": self.seconds,
        }
        if self.status != "failed":
            cost = {name: float(amount) for name, amount in self.cost.items() if isinstance(amount, int | float)}
            scores |= {"tokens": cost["prompt_tokens"] + cost["completion_tokens"], **cost}
        return replace(self, scores=scores)


class Results:
    """The lines of one evaluation's folder, by the thread of the run. Its constructor blocks."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / RESULTS
        self.by_thread = {line["thread"]: Result(**line) for line in read_lines(self._path, repair=True)}

    async def add(self, result: Result) -> None:
        """Append a line; a failed run has none, so that it is tried again."""
        self.by_thread[result.thread] = result
        if result.status != "failed":
            await asyncio.to_thread(append_line, self._path, asdict(result))


def methods_result(
    systems: Sequence[System], questions: Sequence[GoldQuestion], results: Iterable[Result], *, ended: str, seed: int
) -> dict[str, Any]:
    """Score the results; where runs are missing, only questions that every system has ended count.

    `ended` is the reason for an early end.
    """
    by_place = {(result.system, result.question): result for result in results}
    names = [system.name for system in systems]
    whole = [question for question in questions if all((name, question.key) in by_place for name in names)]
    table: Scores = {name: {question.key: by_place[name, question.key].scores for question in whole} for name in names}
    return {
        "systems": [system.record() for system in systems],
        "runs": len(by_place),
        "failed": sum(result.status == "failed" for result in by_place.values()),
        "unfinished": len(systems) * len(questions) - len(by_place),
        "ended": ended,
        "summary": summarize(table, whole, list(METRICS), compared=COMPARED, seed=seed),
        "answers": [_answer(question, by_place[name, question.key]) for question in whole for name in names],
    }


def _answer(question: GoldQuestion, result: Result) -> dict[str, Any]:
    """Return a question with its answer and the right ones, and how to look into its run."""
    return {
        "system": result.system,
        "question": question.key,
        "asked": question.question,
        "expected": list(question.answers),
        "status": result.status,
        "said": result.text,
        "gold_shown": f"{len(result.shown)} of {len(question.gold)}" if question.gold else "–",
        "thread": result.thread,
        "problem": result.problem,
        "f1": result.scores.get("f1"),
    }
