"""One evaluation from its questions to its report."""

import asyncio
import platform
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sleuth import prompts
from sleuth.graphs.core.context import Budget
from sleuth.graphs.registry import runnable
from sleuth.studio.evaluation.cluster import open_cluster
from sleuth.studio.evaluation.data import GoldQuestion, QuestionFile, System, read_questions, require_gold, sample
from sleuth.studio.evaluation.gold import PASSAGES
from sleuth.studio.evaluation.models import EvaluationBudget
from sleuth.studio.evaluation.report import write_report
from sleuth.studio.evaluation.results import Result, Results, methods_result
from sleuth.studio.evaluation.retrieval import measure_search
from sleuth.studio.evaluation.run_folder import name_of_runs, settle_plan
from sleuth.studio.evaluation.runs import Job, judge_all, make_jobs, open_runner, process
from sleuth.studio.simulation import Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.search import Mode
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import hold

PACKAGES = (
    *(DISTRIBUTION, "langgraph", "langgraph-checkpoint-sqlite", "langchain-core", "httpx2", "chromadb"),
    *("tantivy", "sentence-transformers", "torch", "numpy", "scipy", "rouge-score", "matplotlib"),
)
"""Packages that have a part in the numbers."""

OnProgress = Callable[[str, int, int], None]
"""Callback with the activity, its finished part and the total."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Options of one evaluation; without systems only search is scored.

    gold: the parts that are taken from the gold, as `oracle_parts` returns them.
    """

    paths: tuple[Path, ...]
    out: Path
    modes: tuple[Mode, ...] = ()
    systems: tuple[System, ...] = ()
    simulation: Simulation | None = None
    gold: tuple[str, ...] = ()
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
            "simulation": self.simulation.model_dump(mode="json") if self.simulation else None,
            **({"gold": list(self.gold)} if self.gold else {}),
        }


async def evaluate(settings: Settings, wanted: Evaluation, *, on_progress: OnProgress) -> dict[str, Any]:
    """Evaluate, write report.json, report.md and report.html to the folder, and return the content of the first.

    Raises:
        UsageError: the questions cannot be read or do not belong to the collection, or the folder holds another
            evaluation.
        StoreBusy: another process writes to the folder, or documents are being ingested.
        ModelError: no model server answers; finished runs are kept, and the same command resumes.
    """
    if wanted.systems:
        _require_runnable(settings, wanted)
    files = read_questions(wanted.paths)
    questions = sample([each for file in files for each in file.questions], wanted.limit, seed=wanted.seed)
    async with (
        hold(wanted.out, "exclusive", command="sleuth eval"),
        hold(settings.home, "shared", command="sleuth eval", wait=settings.wait),
        await Collection.open(settings) as collection,
    ):
        if not all(question.pages for question in questions):
            await collection.require_documents()
        missing = await require_gold(collection, questions)
        if PASSAGES in wanted.gold and not any(question.gold for question in questions):
            raise UsageError("--gold passages: none of the questions names its gold_ids.")
        data = await _data_record(collection, settings, files)
        plan = {"data": data, **wanted.plan(), "prompts": await prompts.versions() if wanted.systems else {}}
        await asyncio.to_thread(settle_plan, wanted.out, plan)
        result = {
            **{name: plan.get(name, []) for name in ("limit", "seed", "simulation", "gold", "data", "prompts")},
            "command": shlex.join(["sleuth", *sys.argv[1:]]),
            "questions": len(questions),
            "settings": settings.without_secrets(),
            "embedder": collection.embedder and collection.embedder.name,
            "versions": _versions(),
            "warnings": [missing] if missing else [],
        }
        if wanted.modes:
            result["retrieval"] = await measure_search(
                wanted.modes, collection, questions, wanted.out, seed=wanted.seed, on_progress=on_progress
            )
        if wanted.systems:
            models, methods = await _methods(settings, wanted, collection, questions, on_progress=on_progress)
            result |= {"models": models, "methods": methods}
            result["warnings"] += _shortfalls(methods)
        await asyncio.to_thread(write_report, wanted.out, result)
        return result


def _require_runnable(settings: Settings, wanted: Evaluation) -> None:
    """Raise UsageError if a package is not installed, or the runs cannot be made on the cluster of the settings."""
    missing = [name for name in ("matplotlib", "rouge_score", "scipy") if find_spec(name) is None]
    if missing:
        raise UsageError(f"Evaluating methods needs {', '.join(missing)}: pip install '{DISTRIBUTION}[eval]'.")
    if settings.ray and settings.database_url is None:
        raise UsageError(
            "Runs on a Ray cluster need a database that all workers reach: set SLEUTH_DATABASE_URL to Postgres, or "
            "remove --ray."
        )
    if settings.ray and wanted.budget != Budget():
        raise UsageError(
            "The workers of a Ray cluster share no budget. Remove --max-calls, --max-tokens, --max-seconds or --ray."
        )


async def _data_record(collection: Collection, settings: Settings, files: Sequence[QuestionFile]) -> dict[str, Any]:
    """Return the questions' files and the collection, each with a hash of its content."""
    documents, passages = await collection.count()
    questions = [
        {"set": file.set, "path": file.path, "sha256": file.sha256, "questions": len(file.questions)} for file in files
    ]
    counts = {"documents": documents, "passages": passages, "sha256": await collection.fingerprint()}
    return {"collection": {"name": settings.collection, **counts}, "files": questions}


def _versions() -> dict[str, str]:
    """Return the versions that have a part in the numbers."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return versions


async def _methods(
    settings: Settings,
    wanted: Evaluation,
    collection: Collection,
    questions: Sequence[GoldQuestion],
    *,
    on_progress: OnProgress,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the names of the models, and the results of all runs."""
    results = await asyncio.to_thread(Results, wanted.out)
    by_thread, by_key = results.by_thread, {question.key: question for question in questions}
    jobs = make_jobs(
        wanted.systems, questions, await asyncio.to_thread(name_of_runs, wanted.out) if settings.ray else ""
    )
    spent = [kept.cost for kept in by_thread.values()]
    tokens = sum(cost["prompt_tokens"] + cost["completion_tokens"] for cost in spent)
    budget = EvaluationBudget(limits=wanted.budget, calls=sum(cost["calls"] for cost in spent), tokens=tokens)
    simulation, parts = wanted.simulation, wanted.gold
    needs_model = wanted.judge or any(runnable(system.method).needs_model for system in wanted.systems)
    own = settings.model_copy(update={"runs": None if settings.ray else wanted.out})
    async with AsyncExitStack() as opened:
        runner = await opened.enter_async_context(
            open_runner(own, collection, budget, simulation=simulation, parts=parts, needs_model=needs_model)
        )
        run_job: Callable[[Job], Awaitable[Result]] = runner.run
        if settings.ray:
            run_job = await opened.enter_async_context(open_cluster(settings, simulation=simulation, parts=parts))

        async def work(job: Job) -> None:
            await results.add(await run_job(job))
            on_progress("runs", len(by_thread), len(jobs))

        on_progress("runs", len(by_thread), len(jobs))
        ended = await process([job for job in jobs if job.thread not in by_thread], work, settings.concurrency)
        made = [by_thread[job.thread] for job in jobs if job.thread in by_thread]
        if runner.judge and wanted.judge:
            ended = await judge_all(runner.judge, results, made, by_key, at_once=settings.concurrency) or ended
            made = [by_thread[result.thread] for result in made]
    return runner.names(), methods_result(wanted.systems, questions, made, ended=ended, seed=wanted.seed)


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
            f"One of them: {next((each['problem'] for each in result['failures'] if each['problem']), '–')}"
        )
    return lines
