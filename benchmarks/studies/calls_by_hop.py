"""Model calls of each method by the number of hops, on the example questions, with a simulated model.

    python -m benchmarks.studies.calls_by_hop [--mode keyword|hybrid] [--errors] [--methods NAME ...]

Simulated: the model makes no mistakes (with --errors those of simulation.toml), and has no answers of its own;
retrieval is real. Every call counts, repairs too. CRP-RAG's published figures are printed with it. "typical" is what
`sleuth methods` shows: the fewest to the most on questions that have an answer, and the mean on two hops.
"""

import asyncio
import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

from benchmarks.harness import EXAMPLES, PARAMETERS, at_mode, collection, options, run
from sleuth.graphs.registry import METHODS
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation
from sleuth.tools.search import Mode
from sleuth.tools.settings import Settings
from sleuth.tools.sources.question_attributes.svm import find_svm

PUBLISHED = {"min / mean / max": "3 / 4.16 / 13", "by hops": "3.12 / 6.67 / 10.25", "on its mix": 5.15}
"""CRP-RAG, section 5.6 (Xu et al., 2025); the last one follows from its figures by hops and its mix."""

MIX = {"1 hops": 0.5742, "2 hops": 0.28, "3 hops": 0.1458}
"""How many hops the questions of NQ and HotpotQA take, by the same section, which counts comparisons as one."""


def group(gold: Gold) -> str:
    """Return its number of hops; what has no answer, and comparisons, whose hops need not build on
    each other, apart.
    """
    if not gold.answer:
        return "no answer"
    return "comparison" if not gold.is_chain() else f"{len(gold.hops)} hops"


def summary(calls: dict[str, list[int]]) -> dict[str, Any]:
    """Call by group, and of all questions that have an answer."""
    answerable = [number for name, numbers in calls.items() if name != "no answer" for number in numbers]
    every = [number for numbers in calls.values() for number in numbers]
    fewest, most, two = min(answerable), max(answerable), mean(calls["2 hops"])
    span = f"{fewest} to {most}; {two:.0f} on two hops" if fewest < most else str(most)
    return {
        "by group": {name: round(mean(numbers), 2) for name, numbers in sorted(calls.items())},
        "min / mean / max": f"{min(every)} / {mean(every):.2f} / {max(every)}",
        "on the paper's mix": round(sum(share * mean(calls[name]) for name, share in MIX.items()), 2),
        "typical": span,
    }


async def main(mode: Mode, simulation: Simulation, methods: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    async with collection(EXAMPLES / "corpus", EXAMPLES / "questions.jsonl", mode) as among:
        predictor = await asyncio.to_thread(find_svm, Settings().home, among.embedder)
        for name in methods:
            calls: dict[str, list[int]] = defaultdict(list)
            settings = at_mode(METHODS[name].settings(), mode)
            for gold in among.golds:
                model = SimulatedModel(gold, simulation)
                outcome = await run(
                    *(name, gold, model, among.library),
                    embedder=among.embedder,
                    settings=settings,
                    predictor=predictor,
                )
                calls[group(gold)].append(outcome.calls)
            found[name] = summary(calls)
    report = {"label": "simulated", "mode": mode, "parameters": simulation.model_dump(), "methods": found}
    return report | {"published for CRP-RAG": PUBLISHED}


if __name__ == "__main__":
    parser = options(__doc__, "mode", "methods", mode="hybrid", methods=list(METHODS))
    parser.add_argument("--errors", action="store_true", help="make the mistakes of simulation.toml")
    args = parser.parse_args()
    parameters = Simulation.from_toml(PARAMETERS) if args.errors else Simulation(rates={})
    print(json.dumps(asyncio.run(main(args.mode, parameters, args.methods)), indent=1))
