"""What PAR-RAG's settings cost in tokens and bring in F1. Simulated.

    SLEUTH_EMBEDDER=none python benchmarks/par_rag_tokens.py --set CORPUS QUESTIONS [--set ...] --out FOLDER
        [--settings KEY=VALUE,... [...]] [--limit N] [--seeds N]

Each set, named by its folder, is read into a collection below FOLDER; N of its questions, always the same, are asked
once for each seed of the simulation and each of the settings, of which "" are the defaults. All are compared with the
first. Each run is a line in FOLDER/runs.jsonl: killed, or with more of anything, the same command goes on. Prints JSON:
tokens (cached ones counted in full) and calls for each question, F1 in per cent, and by how much it differs, with 95 %
bootstrap intervals over questions, a question's seeds taken together. "all" pools the questions of all sets.
"""

import argparse
import asyncio
import json
import random
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from simulated_runs import Book, Found, collection, run

from sleuth.agents.simulation import Gold, SimulatedModel, Simulation
from sleuth.graphs.registry import METHODS
from sleuth.studio.evaluation.metrics import answer_scores
from sleuth.studio.evaluation.statistics import difference, interval
from sleuth.tools.settings import Profile

PARAMETERS = Path(__file__).with_name("simulation.toml")
PAR_RAG = METHODS["par-rag"]


async def one(gold: Gold, seed: int, settings: str, found: Found) -> dict[str, Any]:
    """A run's F1 and cost."""
    model = SimulatedModel(gold, Simulation.from_toml(PARAMETERS).model_copy(update={"seed": seed}))
    values = dict(each.split("=", 1) for each in settings.split(",") if each)
    profile: Profile = "paper" if values.pop("profile", "") == "paper" else "default"
    outcome = await run("par-rag", gold, model, found, embedder=None, settings=PAR_RAG.configure(values, profile))
    verdict, calls = outcome.state["verdict"], outcome.state["calls"].values()
    scores = answer_scores(verdict["status"], verdict["text"], [gold.answer, *gold.aliases])
    tokens = sum(call["prompt_tokens"] + call["completion_tokens"] for call in calls)
    return {"f1": scores["f1"], "calls": outcome.calls, "tokens": tokens}


async def ask_all(args: argparse.Namespace, book: Book) -> dict[str, dict[str, Any]]:
    """The runs asked for, those that are missing made one question after the other."""
    made = {}
    for corpus, questions in args.set:
        name = questions.parent.name
        async with collection(corpus, questions, "graph", home=args.out / name) as among:
            for gold in drawn(among.golds, args.limit):
                found = Found(among.library)
                for seed, settings in product(range(args.seeds), args.settings):
                    key = json.dumps([name, gold.id, seed, settings])
                    if key not in book.runs:
                        book.add({"key": key, **await one(gold, seed, settings, found)})
                    made[key] = book.runs[key]
                print(f"{name}: {gold.id}", file=sys.stderr, flush=True)
    return made


def drawn(golds: Sequence[Gold], limit: int | None) -> list[Gold]:
    """Some of the questions; with a higher limit the same ones and others."""
    return random.Random(0).sample(golds, len(golds))[:limit]


Means = Mapping[tuple[str, str], Mapping[str, float]]
"""A question's scores and costs over its seeds, by set and question."""


def means(runs: Mapping[str, Mapping[str, Any]], settings: str) -> Means:
    """What was measured with these settings."""
    made: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for key, each in runs.items():
        name, question, _, own = json.loads(key)
        if own == settings:
            made[name, question].append(each)
    return {
        at: {metric: fmean(each[metric] for each in seeds) for metric in ("f1", "calls", "tokens")}
        for at, seeds in made.items()
    }


def row(own: Means, base: Means, among: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Means over some questions, and the F1 less that of the first settings."""
    f1 = interval([100 * own[at]["f1"] for at in among], seed=0)
    apart = difference("own", "base", "f1", [(100 * own[at]["f1"], 100 * base[at]["f1"]) for at in among], seed=0)
    return {
        "questions": len(among),
        **{metric: round(fmean(own[at][metric] for at in among), 2) for metric in ("tokens", "calls")},
        "f1": [f1["mean"], f1["low"], f1["high"]],
        "f1 less the first": [apart["mean"], apart["low"], apart["high"]],
    }


def report(runs: Mapping[str, Mapping[str, Any]], settings: Sequence[str]) -> dict[str, Any]:
    """A row for each of the settings, over each set and over all."""
    base, rows = means(runs, settings[0]), {}
    for each in settings:
        own = means(runs, each)
        sets = {name: [at for at in own if at[0] == name] for name, _ in own}
        rows[each or "default"] = {name: row(own, base, among) for name, among in {**sets, "all": [*own]}.items()}
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", type=Path, nargs=2, action="append", required=True, metavar=("CORPUS", "QUESTIONS"))
    parser.add_argument("--settings", nargs="+", default=[""], help='"profile=paper" is one too')
    parser.add_argument("--limit", type=int, help="questions of each set")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    runs = asyncio.run(ask_all(args, Book.opened(args.out)))
    print(json.dumps(report(runs, args.settings), indent=1))


if __name__ == "__main__":
    main()
