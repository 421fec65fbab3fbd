"""One evaluation from its questions to its report."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sleuth import prompts
from sleuth.graphs.core import Budget
from sleuth.graphs.persistence import open_store
from sleuth.studio.evaluation.data import (
    GoldQuestion,
    OracleParts,
    QuestionPages,
    System,
    gold_texts,
    read_questions,
    require_gold,
    sample,
)
from sleuth.studio.evaluation.reporting import report, to_html, to_markdown
from sleuth.studio.evaluation.running import (
    REPORT,
    EvaluationModels,
    Harness,
    KnownGold,
    RunFolder,
    make_jobs,
    open_folder,
    open_served_models,
    open_simulated_models,
)
from sleuth.studio.evaluation.running import provenance as record
from sleuth.studio.evaluation.scoring import (
    FOUND,
    EvaluationBudget,
    MethodsResult,
    RetrievalResult,
    judge_all,
    measure_search,
    methods_result,
    open_results,
    open_search_systems,
)
from sleuth.studio.simulation import Simulation
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UsageError
from sleuth.tools.search import Mode
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold

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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Open:
    """An evaluation at work: what it has open."""

    wanted: Evaluation
    settings: Settings
    library: Collection
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
        record.require_packages()
    files = read_questions(wanted.paths)
    questions = sample([each for file in files for each in file.questions], wanted.limit, seed=wanted.seed)
    async with (
        open_folder(wanted.out) as folder,
        hold(settings.home, "shared", command="sleuth eval"),
        await Collection.open(settings) as library,
    ):
        if not all(question.pages for question in questions):
            await library.require_documents()
        missing = await require_gold(library, questions)
        if wanted.gold.passages and not any(question.gold for question in questions):
            raise UsageError("--gold passages: none of the questions names its gold_ids.")
        data = await record.data_record(library, settings, files)
        versions = await prompts.versions() if wanted.systems else {}
        await folder.settle({"data": data, **wanted.plan(), "prompts": versions})
        opened = _Open(
            wanted=wanted,
            settings=settings,
            library=library,
            folder=folder,
            questions=questions,
            on_progress=on_progress,
        )
        result = {**_record(opened, data, versions), "warnings": [missing] if missing else []}
        if wanted.modes:
            result["retrieval"] = await _search(opened)
        if wanted.systems:
            result["models"], result["methods"] = await _methods(opened)
            result["warnings"] += _shortfalls(result["methods"])
        await _write(folder, result)
        return result


def _record(opened: _Open, data: dict[str, Any], versions: dict[str, str]) -> dict[str, Any]:
    """Return the data needed to repeat the evaluation."""
    wanted, embedder = opened.wanted, opened.library.embedder
    return {
        "command": record.command_line(),
        "questions": len(opened.questions),
        "data": data,
        "limit": wanted.limit,
        "seed": wanted.seed,
        "simulation": wanted.plan()["simulation"],
        "gold": wanted.gold.names(),
        "settings": record.settings_record(opened.settings),
        "embedder": embedder and embedder.name,
        "versions": record.versions(),
        "prompts": versions,
    }


async def _write(folder: RunFolder, result: dict[str, Any]) -> None:
    parts = report.blocks(result, folder.path)
    await folder.write("report.md", to_markdown(parts))
    await folder.write("report.html", to_html(parts))
    await folder.write(REPORT, to_json(result, indent=2).decode() + "\n")


async def _methods(opened: _Open) -> tuple[dict[str, str], MethodsResult]:
    """Return the names of the models, and the results of all runs."""
    wanted, questions = opened.wanted, opened.questions
    results = await open_results(opened.folder.path)
    every = make_jobs(wanted.systems, questions)
    allowance = EvaluationBudget(limits=wanted.budget)
    for kept in results.by_thread.values():
        allowance.spend(kept["cost"]["calls"], kept["cost"]["prompt_tokens"] + kept["cost"]["completion_tokens"])
    known = KnownGold(texts=await gold_texts(opened.library, questions), pages=QuestionPages())
    own_store = opened.settings.model_copy(update={"runs": opened.folder.path})
    async with open_store(own_store) as store, _models(opened, known, allowance) as models:
        harness = Harness(
            store=store,
            services_for=models.services_for,
            results=results,
            texts=known.texts,
            pages=known.pages,
            at_once=opened.settings.concurrency,
            simulated=wanted.simulation is not None,
        )

        def on_done() -> None:
            opened.on_progress("runs", len(results.by_thread), len(every))

        on_done()
        ended = await harness.run(every, on_done)
        if models.judge and wanted.judge:
            made = [results.by_thread[job.thread] for job in every if job.thread in results.by_thread]
            by_key = {question.key: question for question in questions}
            at_once = opened.settings.concurrency
            ended = await judge_all(models.judge, results, made, by_key, at_once=at_once) or ended
    here = [results.by_thread[job.thread] for job in every if job.thread in results.by_thread]
    return models.names, methods_result(wanted.systems, questions, here, ended=ended, seed=wanted.seed)


def _models(
    opened: _Open, known: KnownGold, allowance: EvaluationBudget
) -> AbstractAsyncContextManager[EvaluationModels]:
    if simulation := opened.wanted.simulation:
        return open_simulated_models(opened.settings, opened.library, known, simulation, allowance)
    return open_served_models(opened.settings, opened.library, known, opened.wanted.gold, allowance)


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
        opened.settings, opened.library, wanted.modes, ablated=wanted.graph_parts
    ) as systems:

        def tick() -> None:
            nonlocal done
            done += 1
            opened.on_progress("searches", done, judged * len(systems))

        result: RetrievalResult = await measure_search(systems, opened.questions, seed=wanted.seed, tick=tick)
    await opened.folder.write_lines(FOUND, result["found"])
    return {key: value for key, value in result.items() if key != "found"}
