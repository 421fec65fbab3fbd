"""One evaluation from its questions to its report."""

import platform
import shlex
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sleuth import prompts
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence import open_store
from sleuth.studio.evaluation.data import GoldQuestion, QuestionFile, System, read_questions, require_gold, sample
from sleuth.studio.evaluation.gold import KnownGold, OracleParts, read_gold
from sleuth.studio.evaluation.harness import Harness, Job, JobRunner, WorkerPlan, judge_all, make_jobs, open_cluster
from sleuth.studio.evaluation.models import EvaluationBudget, EvaluationModels, open_models
from sleuth.studio.evaluation.report import report_blocks
from sleuth.studio.evaluation.reporting import to_html, to_markdown
from sleuth.studio.evaluation.results import MethodsResult, Result, methods_result, open_results
from sleuth.studio.evaluation.retrieval import FOUND, measure_search, open_search_systems
from sleuth.studio.evaluation.run_folder import REPORT, RunFolder, open_folder
from sleuth.studio.simulation import Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.search import Mode
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold

PACKAGES = (
    *(DISTRIBUTION, "langgraph", "langgraph-checkpoint-sqlite", "langchain-core", "openai", "chromadb"),
    *("tantivy", "sentence-transformers", "torch", "numpy", "scipy", "rouge-score", "matplotlib"),
)
"""Packages that have a part in the numbers."""

OnProgress = Callable[[str, int, int], None]
"""Callback with the activity, its finished part and the total."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """Options of one evaluation; without systems only search is scored.

    graph_parts: also score graph search with each of its parts switched off.
    """

    paths: tuple[Path, ...]
    out: Path
    modes: tuple[Mode, ...] = ()
    graph_parts: bool = False
    systems: tuple[System, ...] = ()
    simulation: Simulation | None = None
    gold: OracleParts = field(default_factory=OracleParts)
    judge: bool = False
    budget: Budget = field(default_factory=Budget)
    limit: int | None = None
    seed: int = 0

    def plan(self) -> dict[str, Any]:
        """Return the options that determine the results in the folder; limits on spending are not among them."""
        return {
            "limit": self.limit,
            "seed": self.seed,
            "retrieval": [*self.modes, *(["graph without parts"] if self.graph_parts else [])],
            "methods": [system.record() for system in self.systems],
            "judge": self.judge,
            "simulation": self.simulation.model_dump(mode="json") if self.simulation else None,
            **({"gold": names} if (names := self.gold.names()) else {}),
        }


@dataclass(frozen=True, slots=True)
class _Open:
    """The options and the opened resources of a running evaluation."""

    wanted: Evaluation
    settings: Settings
    collection: Collection
    folder: RunFolder
    questions: list[GoldQuestion]
    on_progress: OnProgress


async def evaluate(settings: Settings, wanted: Evaluation, *, on_progress: OnProgress) -> dict[str, Any]:
    """Evaluate, write report.json, report.md and report.html to the folder, and return the content of the first.

    Raises:
        UsageError: the questions cannot be read or do not belong to the collection, or the folder holds another
            evaluation.
        StoreBusy: another process writes to the folder, or documents are being ingested.
        ModelError: no model server answers; finished runs are kept, and the same command resumes.
    """
    if wanted.systems:
        require_packages()
        _require_shared_store(settings, wanted)
    files = read_questions(wanted.paths)
    questions = sample([each for file in files for each in file.questions], wanted.limit, seed=wanted.seed)
    async with (
        open_folder(wanted.out) as folder,
        hold(settings.home, "shared", command="sleuth eval", wait=settings.wait),
        await Collection.open(settings) as collection,
    ):
        if not all(question.pages for question in questions):
            await collection.require_documents()
        missing = await require_gold(collection, questions)
        if wanted.gold.passages and not any(question.gold for question in questions):
            raise UsageError("--gold passages: none of the questions names its gold_ids.")
        data = await _data_record(collection, settings, files)
        versions = await prompts.versions() if wanted.systems else {}
        await folder.settle({"data": data, **wanted.plan(), "prompts": versions})
        opened = _Open(wanted, settings, collection, folder, questions, on_progress)
        result = {**_record(opened, data, versions), "warnings": [missing] if missing else []}
        if wanted.modes:
            result["retrieval"] = await _search(opened)
        if wanted.systems:
            result["models"], result["methods"] = await _methods(opened)
            result["warnings"] += _shortfalls(result["methods"])
        blocks = report_blocks(result, folder.path)
        await folder.write("report.md", to_markdown(blocks))
        await folder.write("report.html", to_html(blocks))
        await folder.write(REPORT, to_json(result, indent=2).decode() + "\n")
        return result


def require_packages() -> None:
    """Raise UsageError if a package for the report of methods is not installed."""
    missing = [name for name in ("matplotlib", "rouge_score", "scipy") if find_spec(name) is None]
    if missing:
        raise UsageError(f"Evaluating methods needs {', '.join(missing)}: pip install '{DISTRIBUTION}[eval]'.")


def _require_shared_store(settings: Settings, wanted: Evaluation) -> None:
    """Raise UsageError if the runs cannot be made on the cluster of the settings."""
    if not settings.ray:
        return
    if settings.database_url is None:
        raise UsageError(
            "Runs on a Ray cluster need a database that all workers reach: set SLEUTH_DATABASE_URL to Postgres, or "
            "remove --ray."
        )
    if wanted.budget != Budget():
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


def _record(opened: _Open, data: dict[str, Any], versions: dict[str, str]) -> dict[str, Any]:
    """Return the data needed to repeat the evaluation."""
    wanted, embedder = opened.wanted, opened.collection.embedder
    return {
        "command": shlex.join(["sleuth", *sys.argv[1:]]),
        "questions": len(opened.questions),
        "data": data,
        "limit": wanted.limit,
        "seed": wanted.seed,
        "simulation": wanted.plan()["simulation"],
        "gold": wanted.gold.names(),
        "settings": _settings_record(opened.settings),
        "embedder": embedder and embedder.name,
        "versions": _versions(),
        "prompts": versions,
    }


def _settings_record(settings: Settings) -> dict[str, Any]:
    """Return the settings without keys, and without a password that a URL may contain."""
    record = settings.model_dump(mode="json", exclude={"model_key", "api_keys"})
    if record["database_url"]:
        scheme, _, rest = record["database_url"].partition("://")
        record["database_url"] = f"{scheme}://{rest.rpartition('@')[2]}"
    return record


def _versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


async def _methods(opened: _Open) -> tuple[dict[str, str], MethodsResult]:
    """Return the names of the models, and the results of all runs."""
    wanted, settings, collection, questions = opened.wanted, opened.settings, opened.collection, opened.questions
    results = await open_results(opened.folder.path)
    jobs = make_jobs(wanted.systems, questions, await opened.folder.name_of_runs() if settings.ray else "")
    spent = [kept["cost"] for kept in results.by_thread.values()]
    tokens = sum(cost["prompt_tokens"] + cost["completion_tokens"] for cost in spent)
    budget = EvaluationBudget(limits=wanted.budget, calls=sum(cost["calls"] for cost in spent), tokens=tokens)
    known = await read_gold(collection, questions)
    async with (
        open_models(settings, collection, known, budget, simulation=wanted.simulation, gold=wanted.gold) as models,
        _open_runner(opened, known, models) as run_job,
    ):
        harness = Harness(run_job=run_job, results=results, at_once=settings.concurrency)

        def on_done() -> None:
            opened.on_progress("runs", len(results.by_thread), len(jobs))

        on_done()
        ended = await harness.run(jobs, on_done)
        if models.judge and wanted.judge:
            by_key = {question.key: question for question in questions}
            made = [results.by_thread[job.thread] for job in jobs if job.thread in results.by_thread]
            ended = await judge_all(models.judge, results, made, by_key, at_once=settings.concurrency) or ended
    here = [results.by_thread[job.thread] for job in jobs if job.thread in results.by_thread]
    return models.names, methods_result(wanted.systems, questions, here, ended=ended, seed=wanted.seed)


@asynccontextmanager
async def _open_runner(
    opened: _Open, known: KnownGold, models: EvaluationModels
) -> AsyncIterator[Callable[[Job], Awaitable[Result]]]:
    """Open the runner of jobs: the workers of a cluster, or this process with a store in the evaluation's folder."""
    settings, wanted = opened.settings, opened.wanted
    if settings.ray:
        plan = WorkerPlan(settings=settings, simulation=wanted.simulation, gold=wanted.gold, texts=known.texts)
        async with open_cluster(settings.ray, plan) as run_job:
            yield run_job
        return
    async with open_store(settings.model_copy(update={"runs": opened.folder.path})) as store:
        simulated = wanted.simulation is not None
        yield JobRunner(store=store, services_for=models.services_for, known=known, simulated=simulated).run


def _shortfalls(result: MethodsResult) -> list[str]:
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


async def _search(opened: _Open) -> dict[str, Any]:
    wanted, judged = opened.wanted, sum(bool(question.gold) for question in opened.questions)
    if not judged:
        raise UsageError("Search cannot be judged: none of the questions names its gold_ids.")
    done = 0
    async with open_search_systems(
        opened.settings, opened.collection, wanted.modes, ablated=wanted.graph_parts
    ) as systems:

        def tick() -> None:
            nonlocal done
            done += 1
            opened.on_progress("searches", done, judged * len(systems))

        result = await measure_search(systems, opened.questions, seed=wanted.seed, tick=tick)
    await opened.folder.write_lines(FOUND, result["found"])
    return {key: value for key, value in result.items() if key != "found"}
