"""Answers of CRP-RAG if a share of its reasoning steps, or of their knowledge, is replaced by something unrelated.

    python -m benchmarks.studies.crp_robustness [CORPUS QUESTIONS] [--mode keyword|hybrid] [--limit N] --out FOLDER

Simulated: the model plays its roles from gold annotations with the errors of simulation.toml; retrieval is real.
Without arguments the example corpus is asked. Each run is stopped where its graph of steps is finished (or its
knowledge is gathered), its state is changed as a person could with `runs fork --state`, and it is resumed. What comes
in is from another question. Steps are replaced in three ways: by what the model has no gold for; by what the collection
answers, so that the model is as sure of it as of its own steps, and takes it for one ("answerable"); and by the same,
where the model that takes a step sees that it does not serve the question ("noticed"). Writes robustness.json and
robustness.svg.
"""

import argparse
import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver

from benchmarks.harness import EXAMPLES, NO_LIMIT, PARAMETERS, Collection, at_mode, collection, kind_of, options
from sleuth.agents.model import Message, Reply, Request
from sleuth.graphs.core import Context
from sleuth.graphs.methods.crp_rag import SOURCE
from sleuth.graphs.methods.crp_rag import graph as crp_rag
from sleuth.studio.simulation import Gold, SimulatedModel, Simulation
from sleuth.tools.storage import MemoryArchive

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
SEEDS = (0, 1, 2)
What = Literal["steps", "answerable steps", "noticed steps", "knowledge"]
PAUSE: dict[What, tuple[str, str]] = {
    "steps": ("plan", "retrieve"),
    "answerable steps": ("plan", "retrieve"),
    "noticed steps": ("plan", "retrieve"),
    "knowledge": ("aggregate", "verify"),
}
"""After which node the state is changed, and before which one."""

PUBLISHED = {
    "steps": "accuracy almost flat up to 40 % of the steps, mostly refusals at 50 %, the most tried (figure 3)",
    "knowledge": "mostly refusals beyond 30 % of the steps (figure 3)",
}
HOLDS: dict[What, int] = {"steps": 40, "answerable steps": 40, "noticed steps": 40, "knowledge": 30}
"""Up to which per cent, by the paper's words."""


Change = dict[str, Any]


@dataclass(frozen=True)
class Stranger:
    """A step of another question, and that question's gold."""

    step: str
    knowledge: str
    gold: Gold


class Knowing:
    """A simulated model with gold for the replaced steps as well as its own."""

    context_window = 8192

    def __init__(self, gold: Gold, simulation: Simulation) -> None:
        self._own = SimulatedModel(gold, simulation)
        self._others: dict[str, SimulatedModel] = {}
        self._simulation = simulation
        self._notices = False

    def know(self, strangers: list[Stranger], what: What) -> None:
        """Set the other questions that the model can answer, and whether it notices unrelated steps."""
        self._notices = what == "noticed steps"
        known = strangers if what in ("answerable steps", "noticed steps") else []
        self._others = {each.step: SimulatedModel(each.gold, self._simulation) for each in known}

    async def call(self, request: Request) -> Reply:
        if self._notices and request.role == "integrator":
            return await self._own.call(request)
        asked = request.input.get("step", request.input.get("question", ""))
        return await self._others.get(asked, self._own).call(request)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return await self._own.count_tokens(messages, role=role)


def stranger_to(gold: Gold, golds: list[Gold], dice: Random) -> Stranger:
    """Return a step from a question that shares no passage with this one, where it can be answered."""
    own = {hop.passage for hop in gold.hops}
    apart = [other for other in golds if other.hops and not own & {hop.passage for hop in other.hops}]
    other = dice.choice(apart)
    at = dice.choice([at for at, hop in enumerate(other.hops) if hop.answer] or [0])
    return Stranger(other.asked(at), other.statement(at), other)


def replaced(state: dict[str, Any], what: What, share: float, strangers: "Strangers") -> tuple[Change, list[Stranger]]:
    """Return the change of a state in which a share of the steps, to the nearest by chance, is not its own any more."""
    steps = [key for key in state["nodes"] if key != SOURCE]
    number = int(share * len(steps) + strangers.dice.random())
    chosen = {key: strangers() for key in strangers.dice.sample(steps, min(number, len(steps)))}
    if what != "knowledge":
        nodes = {key: {**state["nodes"][key], "content": stranger.step} for key, stranger in chosen.items()}
        return {"nodes": nodes}, list(chosen.values())
    knowledge = {key: {"text": stranger.knowledge, "citations": []} for key, stranger in chosen.items()}
    return {"knowledge": knowledge}, list(chosen.values())


class Strangers:
    """Draws them, always the same for a question and a seed."""

    def __init__(self, gold: Gold, golds: list[Gold], seed: int) -> None:
        self.dice = Random(f"{seed} {gold.id}")
        self._gold, self._golds = gold, golds

    def __call__(self) -> Stranger:
        return stranger_to(self._gold, self._golds, self.dice)


async def disturbed(
    gold: Gold, among: Collection, settings: crp_rag.Settings, simulation: Simulation, what: What
) -> list[str]:
    """Return the outcome of one question at each share: right, refused or wrong. All shares fork from one run."""
    model = Knowing(gold, simulation)
    after, before = PAUSE[what]
    context = Context(
        model=model,
        retriever=among.library,
        archive=MemoryArchive(),
        settings=settings,
        embedder=among.embedder,
    )
    compiled = crp_rag.graph().compile(checkpointer=InMemorySaver(), interrupt_before=[before])
    config: Any = {"configurable": {"thread_id": "1"}, "recursion_limit": NO_LIMIT}
    ended = await compiled.ainvoke({"question": gold.question}, config, context=context)  # type: ignore[call-overload]
    paused = await compiled.aget_state(config)
    if not paused.next:
        return [kind_of(gold, ended["verdict"])] * len(SHARES)
    kinds = []
    for share in SHARES:
        change, met = replaced(paused.values, what, share, Strangers(gold, among.golds, simulation.seed))
        model.know(met, what)
        fork = await compiled.aupdate_state(paused.config, change, as_node=after)
        kinds.append(kind_of(gold, (await compiled.ainvoke(None, fork, context=context))["verdict"]))
    return kinds


async def study(among: Collection, settings: crp_rag.Settings, simulation: Simulation) -> list[dict[str, Any]]:
    """Return a row for each kind of noise and share: how many of the questions with an answer, and of those without
    one.
    """
    found = []
    for what in PAUSE:
        counts = {(share, known): Counter[str]() for share in SHARES for known in (True, False)}
        for seed in SEEDS:
            seeded = simulation.model_copy(update={"seed": seed})
            for gold in among.golds:
                for share, kind in zip(SHARES, await disturbed(gold, among, settings, seeded, what), strict=True):
                    counts[share, bool(gold.answer)][kind] += 1
        for share in SHARES:
            without = {"without answer": _shares(counts[share, False])}
            found.append({"noise": what, "share": share, **_shares(counts[share, True]), **without})
            print(json.dumps(found[-1]), flush=True)
    return found


def _shares(counts: Counter[str]) -> dict[str, float]:
    total = max(1, counts.total())
    return {"runs": counts.total()} | {kind: round(counts[kind] / total, 4) for kind in ("right", "refused", "wrong")}


def draw(found: list[dict[str, Any]], title: str, file: Path) -> None:
    """Return a panel for each kind of noise; shaded is where the paper reports that accuracy holds."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "sleuth", "svg.fonttype": "none"})
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 4, figsize=(13, 3.8), sharey=True, layout="constrained")
    for axis, what in zip(axes, PAUSE, strict=True):
        rows = [row for row in found if row["noise"] == what]
        shares = [100 * row["share"] for row in rows]
        for kind, colour in (("right", "#2a7"), ("refused", "#888"), ("wrong", "#c33")):
            axis.plot(shares, [100 * row[kind] for row in rows], marker="o", color=colour, label=kind)
        axis.axvspan(0, HOLDS[what], color="#2a7", alpha=0.08, label="published: accuracy holds")
        axis.set(xlabel=f"{what} replaced, %", ylim=(0, 100), title=f"{what} replaced")
    axes[0].set_ylabel("simulated questions, %")
    axes[0].legend(fontsize="small")
    figure.suptitle(title)
    figure.savefig(file, metadata={"Date": None})


async def main(args: argparse.Namespace) -> dict[str, Any]:
    simulation = Simulation.from_toml(PARAMETERS)
    settings = at_mode(crp_rag.Settings(shortcut=False), args.mode)
    async with collection(args.corpus, args.questions, args.mode, limit=args.limit, home=args.home) as among:
        found = await study(among, settings, simulation)
        about = {"label": "simulated", "questions": len(among.golds), "mode": args.mode, "seeds": SEEDS}
    return about | {"parameters": simulation.model_dump(), "published": PUBLISHED, "rows": found}


def write(report: dict[str, Any], name: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "robustness.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    title = f"CRP-RAG with noise, simulated ({name}, {report['questions']} questions, {report['mode']})"
    draw(report["rows"], title, folder / "robustness.svg")


if __name__ == "__main__":
    examples = {"corpus": EXAMPLES / "corpus", "questions": EXAMPLES / "questions.jsonl"}
    given = options(__doc__, "corpus", "questions", "mode", "limit", "home", "out", **examples).parse_args()
    write(asyncio.run(main(given)), given.questions.name, given.out)
