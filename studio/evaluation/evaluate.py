"""One evaluation from its questions to its report."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from sleuth.studio.evaluation import record, report
from sleuth.studio.evaluation.folder import REPORT, Folder, open_folder
from sleuth.studio.evaluation.questions import GoldQuestion, read_questions, require_gold, sample
from sleuth.studio.evaluation.retrieval import RetrievalResult, measure_search
from sleuth.tools.errors import UsageError
from sleuth.tools.library import Library
from sleuth.tools.locks import hold
from sleuth.tools.retriever import Mode
from sleuth.tools.settings import Settings

OnProgress = Callable[[str, int, int], None]
"""What is going on, how much of it is done, and how much there is."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """What is asked of one evaluation."""

    paths: tuple[Path, ...]
    out: Path
    modes: tuple[Mode, ...] = ()
    limit: int | None = None
    seed: int = 0


async def evaluate(settings: Settings, wanted: Evaluation, *, on_progress: OnProgress) -> dict[str, Any]:
    """Evaluates, writes report.json and report.md into the folder, and returns the former.

    Raises:
        UsageError: questions that cannot be read or do not belong to the collection, or a folder of another evaluation.
        StoreBusy: another process writes to the folder, or documents are being read in.
    """
    files = read_questions(wanted.paths)
    questions = sample([each for file in files for each in file.questions], wanted.limit, seed=wanted.seed)
    async with (
        open_folder(wanted.out) as folder,
        hold(settings.home, "shared", command="sleuth eval"),
        await Library.open(settings) as library,
    ):
        await library.require_documents()
        missing = await require_gold(library, questions)
        about = {"data": await record.data_record(library, settings, files), "limit": wanted.limit, "seed": wanted.seed}
        await folder.settle({**about, "retrieval": wanted.modes})
        result: dict[str, Any] = {
            "command": record.command_line(),
            "questions": len(questions),
            "warnings": [missing] if missing else [],
            **about,
            "settings": record.settings_record(settings),
            "embedder": library.embedder and library.embedder.name,
            "versions": record.versions(),
        }
        if wanted.modes:
            result["retrieval"] = await _search(library, questions, wanted, folder, on_progress)
        await folder.write(REPORT, to_json(result, indent=2).decode() + "\n")
        await folder.write("report.md", report.markdown(result))
        return result


async def _search(
    library: Library, questions: list[GoldQuestion], wanted: Evaluation, folder: Folder, on_progress: OnProgress
) -> dict[str, Any]:
    judged = sum(bool(question.gold) for question in questions)
    if not judged:
        raise UsageError("Search cannot be judged: none of the questions names its gold_ids.")
    done, total = 0, judged * len(wanted.modes)

    def tick() -> None:
        nonlocal done
        done += 1
        on_progress("searches", done, total)

    result: RetrievalResult = await measure_search(library, questions, wanted.modes, seed=wanted.seed, tick=tick)
    await folder.write_lines("retrieval.jsonl", result["found"])
    return {key: value for key, value in result.items() if key != "found"}
