"""F1, refusals and calls of every method by the kind and rate of the model's errors. Simulated.

    SLEUTH_EMBEDDER=none python -m benchmarks.studies.error_rates --set CORPUS QUESTIONS [--set …] \
        [--limit N] --out FOLDER

Four studies, each a grid of systems and rates; all else is as simulation.toml has it, and retrieval is real:

- methods: every method, with one kind of error at a time at several rates, and with those of simulation.toml;
- review: PAR-RAG with and without its review, by how often drafts are invented and reviews flatter;
- going back: RetroRAG as it is, with parts of what it takes back switched off, and with one round;
- thresholds: `auto` by the probability from which it is content with an answer, and by where it gets its answers.

Runs go question by question through all cells, each run a line in FOLDER/runs.jsonl: killed, or with a higher limit,
rerun the same command to resume. Writes error-rates.json and error-rates.svg; intervals are 95 % bootstrap intervals
over questions.
"""

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import PARAMETERS, Book, Collection, Found, at_mode, collection, options, run
from sleuth.graphs.core import MethodSettings
from sleuth.graphs.registry import METHODS, configure
from sleuth.studio.evaluation.scoring import answer_scores, difference, interval
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation
from sleuth.tools.search import Mode
from sleuth.tools.settings import Settings
from sleuth.tools.sources.question_attributes import Predictor
from sleuth.tools.sources.question_attributes.svm import find_svm

KINDS = ("wrong-question", "missed", "invented", "flattering", "overconfident")
RATES = (0.1, 0.2, 0.4)
SEED = 0

Rates = tuple[tuple[str, float], ...]
ALL: Rates = (("all", 1.0),)
"""The rates of simulation.toml."""


@dataclass(frozen=True)
class System:
    """A method with settings of its own."""

    name: str
    method: str
    values: tuple[tuple[str, Any], ...] = ()

    def settings(self, mode: Mode) -> MethodSettings:
        return at_mode(configure(METHODS[self.method], dict(self.values), "default"), mode)


@dataclass(frozen=True)
class Cell:
    """One system at one choice of rates."""

    study: str
    system: System
    rates: Rates

    def key(self, question: str) -> str:
        return json.dumps([self.system.name, self.rates, question])


def cells() -> list[Cell]:
    """Return the cells that are run for each question; cells shared by studies are run once."""
    own = [System(name, name) for name in METHODS]
    errors: list[Rates] = [(), *(((kind, rate),) for kind in KINDS for rate in RATES), ALL]
    made = [Cell("methods", system, rates) for system in own for rates in errors]
    par, alone = System("par-rag", "par-rag"), System("par-rag without review", "par-rag", (("review", False),))
    for invented in (0.0, *RATES):
        drafts: Rates = (("drafter.invented", invented),)
        made += [Cell("review", par, (*drafts, ("reviewer.flattering", rate))) for rate in (0.0, 0.2, 0.4, 0.8)]
        made.append(Cell("review", alone, drafts))
    some: list[Rates] = [(), (("missed", 0.2),), (("invented", 0.2),), (("overconfident", 0.2),), ALL]
    made += [Cell("going back", system, rates) for system in _retro() for rates in some]
    made += [Cell("thresholds", system, rates) for system in _auto() for rates in some]
    return made


def _retro() -> list[System]:
    variants: dict[str, tuple[tuple[str, Any], ...]] = {
        "retro-rag": (),
        "retro-rag, orphans kept": (("orphans", "keep"),),
        "retro-rag, evidence not tested": (("evaluate_evidence", False),),
        "retro-rag, one round": (("max_iterations", 1),),
    }
    return [System(name, "retro-rag", values) for name, values in variants.items()]


def _auto() -> list[System]:
    sure = [System(f"auto above {p:g}", "auto", (("min_confidence", p),)) for p in (0.0, 0.2, 0.35, 0.65, 0.8, 0.95)]
    return [System("auto", "auto"), *sure, System("auto, two citations", "auto", (("min_citations", 2),))]


def simulation(rates: Rates) -> Simulation:
    """Return simulation.toml with these error rates."""
    whole = Simulation.from_toml(PARAMETERS).model_copy(update={"seed": SEED})
    if rates == ALL:
        return whole
    return whole.model_copy(update={"rates": {"closed-book": whole.rates["closed-book"], **dict(rates)}})


@dataclass(frozen=True)
class Table:
    """Shared data of all runs on one collection."""

    among: Collection
    found: Found
    mode: Mode
    predictor: Predictor | None


async def one(cell: Cell, gold: Gold, table: Table) -> dict[str, Any]:
    """Return a run's scores and cost."""
    outcome = await run(
        *(cell.system.method, gold, SimulatedModel(gold, simulation(cell.rates)), table.found),
        embedder=table.among.embedder,
        settings=cell.system.settings(table.mode),
        predictor=table.predictor,
    )
    verdict = outcome.state["verdict"]
    scores = answer_scores(verdict["status"], verdict["text"], [gold.answer, *gold.aliases])
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in outcome.state["calls"].values())
    methods = [hop["method"] for hop in outcome.state.get("hops", {}).values()] if cell.system.method == "auto" else []
    return {"f1": scores["f1"], "refused": scores["refused"], "calls": outcome.calls, "tokens": tokens, "hops": methods}


async def ask_all(args: argparse.Namespace, book: Book) -> None:
    """Return the runs that are missing, one question after the other through all sets."""
    for corpus, questions in args.set:
        name = f"{questions.parent.name}/{questions.name}"
        async with collection(corpus, questions, args.mode, limit=args.limit) as among:
            predictor = await asyncio.to_thread(find_svm, Settings().home, among.embedder)
            table = Table(among, Found(among.library), args.mode, predictor)
            for gold in among.golds:
                for cell in cells():
                    key = cell.key(f"{name}/{gold.id}")
                    if key not in book.runs:
                        made = await one(cell, gold, table)
                        book.add({"key": key, "set": name, **made})
                print(f"{name}: {gold.id}", file=sys.stderr, flush=True)


def rows(book: Book) -> list[dict[str, Any]]:
    """Return a row for each cell: means with intervals, and how F1 differs from that of the same system without
    errors.
    """
    by_cell: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for made in book.runs.values():
        system, rates, question = json.loads(made["key"])
        by_cell[json.dumps([system, rates])][question] = made
    return [_row(cell, by_cell) for cell in cells() if _named(cell.system.name, cell.rates) in by_cell]


def _named(system: str, rates: Rates) -> str:
    return json.dumps([system, rates])


def _row(cell: Cell, by_cell: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, Any]:
    own, before = by_cell[_named(cell.system.name, cell.rates)], by_cell.get(_named(cell.system.name, ()), {})
    row: dict[str, Any] = {"study": cell.study, "system": cell.system.name, "rates": dict(cell.rates)}
    for metric in ("f1", "refused", "calls", "tokens"):
        found = interval([made[metric] for made in own.values()], seed=SEED)
        row[metric] = [found["mean"], found["low"], found["high"]]
    pairs = [(made["f1"], before[question]["f1"]) for question, made in own.items() if question in before]
    apart = difference("with errors", "without", "f1", pairs, seed=SEED)
    return {**row, "questions": len(own), "f1 less that without errors": [apart["mean"], apart["low"], apart["high"]]}


def draw(found: Sequence[Mapping[str, Any]], title: str, file: Path) -> None:
    """Return a column for each kind of error: F1 above, refusals below, against the rate."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "sleuth", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, len(KINDS), figsize=(16, 7), sharex=True, sharey="row", layout="constrained")
    colours = plt.get_cmap("tab20")
    for column, kind in enumerate(KINDS):
        for at, name in enumerate(METHODS):
            own = [row for row in found if row["study"] == "methods" and row["system"] == name]
            line = [row for row in own if not row["rates"] or kind in row["rates"]]
            rates = [100 * row["rates"].get(kind, 0) for row in line]
            for axis, metric in zip(axes[:, column], ("f1", "refused"), strict=True):
                axis.plot(rates, [100 * row[metric][0] for row in line], marker=".", color=colours(at), label=name)
        axes[0, column].set(title=kind, ylim=(0, 100))
        axes[1, column].set(xlabel="rate, %", ylim=(0, 100))
    axes[0, 0].set_ylabel("simulated F1")
    axes[1, 0].set_ylabel("refused, %")
    axes[0, -1].legend(fontsize="small", loc="upper left", bbox_to_anchor=(1, 1))
    figure.suptitle(title)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    args = options(__doc__, "set", "mode", "limit", "out").parse_args()
    book = Book.opened(args.out)
    asyncio.run(ask_all(args, book))
    asked = {json.loads(key)[2] for key in book.runs}
    report = {"label": "simulated", "mode": args.mode, "seed": SEED, "questions": len(asked), "rows": rows(book)}
    text = json.dumps(report, indent=1)
    (args.out / "error-rates.json").write_text(text, encoding="utf-8")
    draw(report["rows"], f"Methods and errors, simulated ({len(asked)} questions)", args.out / "error-rates.svg")
    print(text)


if __name__ == "__main__":
    main()
