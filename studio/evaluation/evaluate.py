"""One evaluation from its questions to its report."""

import asyncio
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from sleuth import prompts
from sleuth.graphs.core.context import Budget
from sleuth.graphs.registry import runnable
from sleuth.studio.evaluation.data import GoldQuestion, QuestionFile, System, read_questions, require_gold, sample
from sleuth.studio.evaluation.gold import Players
from sleuth.studio.evaluation.models import EvaluationBudget
from sleuth.studio.evaluation.report import write_report
from sleuth.studio.evaluation.results import Results, methods_result
from sleuth.studio.evaluation.retrieval import measure_search
from sleuth.studio.evaluation.run_folder import settle_plan
from sleuth.studio.evaluation.runs import Job, judge_all, open_runner, process
from sleuth.tools.collection import Collection
from sleuth.tools.errors import DISTRIBUTION
from sleuth.tools.search import Mode
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

PACKAGES = (
    *(DISTRIBUTION, "langgraph", "langgraph-checkpoint-sqlite", "langchain-core", "httpx2", "chromadb"),
    *("tantivy", "sentence-transformers", "torch", "numpy", "scipy"),
)
"""Packages on which the results depend."""

OnProgress = Callable[[str, int, int], None]
"""Callback with the activity, its finished part and the total."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Options of one evaluation; without systems only search is scored."""

    paths: tuple[Path, ...]
    out: Path
    modes: tuple[Mode, ...] = ()
    systems: tuple[System, ...] = ()
    players: Players | None = None
    judge: bool = False
    budget: Budget = field(default_factory=Budget)
    limit: int | None = None
    seed: int = 0

    def plan(self) -> dict[str, Any]:
        """Return the options that determine the results in the folder; limits on spending are not among them."""
        return {
            "limit": self.limit,
            "seed": self.seed,
            "retrieval": list(self.modes),
            "methods": [system.record() for system in self.systems],
            "judge": self.judge,
            **(self.players.record() if self.players else {}),
        }


async def evaluate(settings: Settings, evaluation: Evaluation, *, on_progress: OnProgress) -> dict[str, Any]:
    """Evaluate, write report.json and report.html to the folder, and return the content of the first.

    Raises:
        UsageError: the questions cannot be read or do not belong to the collection, or the folder holds another
            evaluation.
        StoreBusy: another process writes to the folder, or documents are being ingested.
        ModelError: no model server answers; finished runs are kept, and the same command resumes.
    """
    files = read_questions(evaluation.paths)
    every = [question for file in files for question in file.questions]
    questions = sample(every, evaluation.limit, seed=evaluation.seed)
    async with (
        hold(evaluation.out, "exclusive", command="sleuth eval"),
        hold(settings.home, "shared", command="sleuth eval", wait=settings.wait),
        await Collection.open(settings) as collection,
    ):
        if not all(question.pages for question in questions):
            await collection.require_documents()
        missing = await require_gold(collection, questions)
        players, data = evaluation.players, await _data_record(collection, settings, files)
        plan = {"data": data, **evaluation.plan(), "prompts": await prompts.versions() if evaluation.systems else {}}
        await asyncio.to_thread(settle_plan, evaluation.out, plan)
        result = {
            **{name: plan[name] for name in ("limit", "seed", "data", "prompts")},
            **(players.record() if players else {}),
            "title": players.title if players else "",
            "notice": players.notice if players else "",
            "command": f"{players.command if players else 'sleuth'} {shlex.join(sys.argv[1:])}",
            "questions": len(questions),
            "settings": settings.without_secrets(),
            "embedder": collection.embedder and collection.embedder.name,
            "versions": _versions(),
            "warnings": [missing] if missing else [],
        }
        if evaluation.modes:
            result["retrieval"] = await measure_search(
                evaluation.modes, collection, questions, evaluation.out, seed=evaluation.seed, on_progress=on_progress
            )
        if evaluation.systems:
            models, methods = await _methods(settings, evaluation, collection, questions, on_progress=on_progress)
            result |= {"models": models, "methods": methods}
            result["warnings"] += _shortfalls(methods)
        await asyncio.to_thread(write_report, evaluation.out, result)
        return result


async def _data_record(collection: Collection, settings: Settings, files: Sequence[QuestionFile]) -> dict[str, Any]:
    """Return the questions' files and the collection, each with a hash of its content."""
    documents, passages = await collection.count()
    questions = [
        {"set": file.set, "path": file.path, "sha256": file.sha256, "questions": len(file.questions)} for file in files
    ]
    counts = {"documents": documents, "passages": passages, "sha256": await collection.fingerprint()}
    return {"collection": {"name": settings.collection, **counts}, "files": questions}


def _versions() -> dict[str, str]:
    """Return the installed versions of Python and of these packages."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


async def _methods(
    settings: Settings,
    evaluation: Evaluation,
    collection: Collection,
    questions: Sequence[GoldQuestion],
    *,
    on_progress: OnProgress,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the names of the models, and the results of all runs."""
    results = await asyncio.to_thread(Results, evaluation.out)
    by_thread, by_key = results.by_thread, {question.key: question for question in questions}
    # Question by question, so that an early end still compares the systems on the same questions.
    jobs = [Job(system=system, question=question) for question in questions for system in evaluation.systems]
    costs = [result.cost for result in by_thread.values()]
    tokens = sum(cost["prompt_tokens"] + cost["completion_tokens"] for cost in costs)
    budget = EvaluationBudget(limits=evaluation.budget, calls=sum(cost["calls"] for cost in costs), tokens=tokens)
    needs_model = evaluation.judge or any(runnable(system.method).needs_model for system in evaluation.systems)
    settings = settings.model_copy(update={"runs": evaluation.out})
    async with open_runner(settings, collection, budget, players=evaluation.players, needs_model=needs_model) as runner:

        async def work(job: Job) -> None:
            await results.add(await runner.run(job))
            on_progress("runs", len(by_thread), len(jobs))

        on_progress("runs", len(by_thread), len(jobs))
        ended = await process([job for job in jobs if job.thread not in by_thread], work, settings.concurrency)
        finished = [by_thread[job.thread] for job in jobs if job.thread in by_thread]
        if evaluation.judge and not runner.is_played:
            ended = await judge_all(runner.limited, results, finished, by_key, at_once=settings.concurrency) or ended
            finished = [by_thread[result.thread] for result in finished]
    return runner.names(), methods_result(evaluation.systems, questions, finished, ended=ended, seed=evaluation.seed)


def _shortfalls(result: dict[str, Any]) -> list[str]:
    """Return a warning for each reason why the tables are incomplete."""
    lines = []
    if result["unfinished"]:
        lines.append(
            f"{result['unfinished']:,} runs were not made: {result['ended']}. Only questions with a run of every "
            "system count; rerun the same command with a larger budget to resume."
        )
    if result["failed"]:
        lines.append(
            f"{result['failed']:,} runs ended with an error and count as wrong; the same command tries them again. "
            f"One of them: {next((answer['problem'] for answer in result['answers'] if answer['problem']), '–')}"
        )
    return lines
