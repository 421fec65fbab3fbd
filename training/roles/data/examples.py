"""Make examples for tuning: `python -m training.roles.data.examples TRAIN... --out FOLDER`.

Several methods answer every training question with a simulated model, over real retrieval from all the files'
paragraphs. The right reply to each call is recorded with the exact prompt.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from sleuth.agents.formatting import Source
from sleuth.agents.roles.inputs import PassageInput
from sleuth.agents.roles.reading import EXTRACT, READ
from sleuth.agents.roles.reasoning import INFER
from sleuth.graphs.core.context import Context
from sleuth.graphs.registry import configure, method
from sleuth.graphs.runs.execution import RECURSION_LIMIT, compile_method
from sleuth.studio.cli.app import run_cli
from sleuth.studio.cli.options import parse_pairs
from sleuth.studio.evaluation.run_folder import append_line, read_lines, write_lines
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.search import Retriever
from sleuth.tools.settings import Settings
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.text.normalization import comparison_key
from training.questions import TrainingSet, lines, read
from training.roles.data.facts import Known, PassageFacts, extraction_of
from training.roles.data.judgements import attributions, irrelevances, supports
from training.roles.data.mix import BUDGET, count_by_prompt, mix_examples
from training.roles.data.source_order import arrange
from training.roles.data.teacher import Example, Learned, Teacher
from training.roles.data.wording import reword
from training.simulation import Simulation, gold_of
from training.simulation.parameters import CLOSED_BOOK

METHODS = ("plain-rag", "par-rag", "crp-rag", "retro-rag", "ras")
STUDENT = {
    **{"missed": 0.15, "invented": 0.15, "wrong-question": 0.1, "flattering": 0.2, "overconfident": 0.2},
    "drafter.guessed": 1.0,
}
"""Error rates of the earlier roles; a draft is always written, and its review decides whether it is accepted."""
WHOLE_QUESTION = frozenset({"reader", "verifier", "evaluator", "reasoner", "aggregator"})
"""Roles that can be taught by steps that are only derived, if asked the question itself: others speak of the steps."""
SOURCES = {
    "plain-rag": ("top_k",),
    "par-rag": ("coarse_k", "fine_k"),
    "crp-rag": ("top_k",),
    "retro-rag": ("top_k", "max_sources"),
    "ras": ("top_k",),
}
"""How many passages a prompt shows, by method. Of few a model learns as much in less time, so the plays differ."""
FEW = (2, 3, 3, 5)
ALSO: dict[str, dict[str, Any]] = {"par-rag": {"skip_supported": False}}
"""Settings that show a role more than it would see: a reviewer learns also from drafts that need no review."""
WITHOUT_FINDINGS = 0.4
"""The share of RAS's plays in which the planner notes no findings, as in its paper."""
REWORDED = 0.7
"""The share of the plays in which a question is asked in other words, where it can be."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulatedRun:
    """A question by a method, with further settings of it; `unaided` if the base model answers it without documents."""

    row: dict[str, Any]
    method: str
    seed: int
    values: Mapping[str, str] = field(default_factory=dict)
    unaided: bool = False

    @property
    def name(self) -> str:
        """Which one it is."""
        return f"{self.seed}\n{self.row['set']}\n{self.row['id']}\n{self.method}"

    @property
    def dice(self) -> Random:
        """The random generator of this run, independent of all other runs."""
        return Random(sha256(self.name.encode()).digest())  # noqa: S311 - repeatable by design


async def simulate_run(
    each: SimulatedRun, known: TrainingSet, retriever: Retriever, facts: PassageFacts
) -> list[Example]:
    """Return the examples from one run."""
    gold = facts.worded(gold_of(each.row, {id: known.passages[id] for id in each.row["gold_ids"]}))
    dice = each.dice
    if dice.random() < REWORDED:
        gold = replace(gold, question=reword(gold, dice))
    closed_book = {CLOSED_BOOK: 1.0} if each.unaided and each.method == "ras" else {}
    student = Simulation(seed=dice.randrange(2**31), rates=STUDENT | closed_book, rephrase=0.2)
    teacher = Teacher(each.row["set"], gold, student, facts, closed_book=closed_book)
    kind = method(each.method)
    few = dice.choice(FEW)
    also = {"findings": False} if each.method == "ras" and dice.random() < WITHOUT_FINDINGS else {}
    context = Context(
        model=teacher,
        retriever=arrange(retriever, known, each.row["gold_ids"], gold, dice),
        archive=MemoryArchive(),
        settings=configure(
            kind, {**dict.fromkeys(SOURCES[each.method], few), **ALSO.get(each.method, also), **each.values}, "default"
        ),
    )
    place = RunnableConfig(configurable={"thread_id": "1"}, recursion_limit=RECURSION_LIMIT)
    await compile_method(each.method, InMemorySaver()).ainvoke({"question": gold.question}, place, context=context)
    derived = gold.origin == "derived" and len(gold.hops) > 1
    # calls are concurrent and may be recorded in any order
    in_order = sorted(teacher.learned, key=lambda learned: json.dumps(asdict(learned.example)))
    wanted = [learned for learned in in_order if not derived or _whole(learned, gold.question)]
    answers = [learned for learned in wanted if learned.example.prompt == READ.prompt]
    checked = [example for learned in answers for example in supports(learned, dice)]
    seen = [learned for learned in wanted if learned.example.prompt == INFER.prompt]
    negatives = [example for learned in seen for example in irrelevances(learned)]
    return [learned.example for learned in wanted] + checked + negatives


def _whole(learned: Learned, question: str) -> bool:
    asked = next((learned.given[name] for name in ("step", "question", "query") if name in learned.given), question)
    return learned.example.role in WHOLE_QUESTION and comparison_key(asked) == comparison_key(question)


class PassageTriples(BaseModel):
    """A line of a file of triples: a passage, and the triples in it."""

    title: str
    text: str
    triples: list[tuple[str, str, str]]


def extractions(files: Sequence[Path]) -> tuple[list[Example], Known]:
    """Return the right extractions of passages in files of triples, and the triples."""
    known = {(line.title, line.text): line.triples for file in files for line in lines(file, PassageTriples)}
    examples = []
    for (title, text), triples in known.items():
        given = PassageInput(sources=(Source(title=title, text=text),))
        reply = extraction_of(triples).model_dump_json()
        examples.append(Example.of(EXTRACT, given, reply, set="triples", hops=0, question=title))
    return examples, known


def plan_runs(
    known: TrainingSet,
    *,
    seed: int,
    limit: int | None,
    methods: Sequence[str] = METHODS,
    values: Mapping[str, str] | None = None,
    unaided: frozenset[str] = frozenset(),
) -> list[SimulatedRun]:
    """Return every question with one method, in random order, then with another, until all methods are used.

    `values` are settings of the methods. RAS's planner is taught not to search for the `unaided`, ids of questions that
    the base model answers without documents.

    Raises:
        UsageError: an unsupported method, or a setting that one of them does not have.
    """
    for name in methods:
        if name not in METHODS:
            raise UnknownName("method to play", name, list(METHODS), f"There are: {', '.join(METHODS)}.")
        configure(method(name), values or {}, "default")
    dice = Random(seed)  # noqa: S311 - repeatable by design
    rows = [row for row in known.questions if row["gold_ids"]]
    orders = [_methods(row, dice) for row in rows]
    shuffled = dice.sample(range(len(rows)), len(rows))
    turns = [(rows[at], orders[at][turn]) for turn in range(len(METHODS)) for at in shuffled if turn < len(orders[at])]
    return [
        SimulatedRun(row=row, method=name, seed=seed, values=values or {}, unaided=row["id"] in unaided)
        for row, name in turns
        if name in methods
    ][:limit]


def _methods(row: Mapping[str, Any], dice: Random) -> list[str]:
    """Return all methods if the steps are known, one if there is one step; otherwise methods that need no steps."""
    if _has_steps(row):
        return dice.sample(METHODS, len(METHODS))
    if len(row["gold_ids"]) == 1:
        return [dice.choice(METHODS)]
    return dice.sample(["plain-rag", dice.choice(["crp-rag", "retro-rag"])], 2)


def _has_steps(row: Mapping[str, Any]) -> bool:
    return bool(row["decomposition"] or row["evidence_triples"])


def read_unaided(file: Path) -> frozenset[str]:
    """Return the ids of the questions that closed-book answered exactly, from an evaluation's `results.jsonl`.

    Raises:
        UsageError: the file is missing, or is no such file.
    """
    try:
        rows = [json.loads(line) for line in file.read_bytes().splitlines()]
        return frozenset(row["question"] for row in rows if row["system"] == "closed-book" and row["scores"]["em"] == 1)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"The results in {file} cannot be read ({error}): make them with `sleuth eval --methods closed-book`."
        ) from None


async def make(
    known: TrainingSet,
    turns: Sequence[SimulatedRun],
    found: Sequence[Example],
    facts: PassageFacts,
    folder: Path,
    *,
    budget: float,
    seed: int,
) -> dict[str, Any]:
    """Write all examples to `all.jsonl`, and a sample of them to `examples.jsonl`; return a card of both.

    If interrupted, it resumes after the last recorded run.
    """
    log = folder / "runs.jsonl"
    made = {row["run"]: row["examples"] for row in read_lines(log, repair=True)}
    corpus, settings = folder / "corpus.jsonl", Settings(home=folder / "home", embedder="none")
    await asyncio.to_thread(write_lines, corpus, known.corpus())
    await ingest([corpus], settings=settings)
    async with await Collection.open(settings) as collection:
        with typer.progressbar(turns, label="Playing", file=sys.stderr) as shown:
            for each in shown:
                if each.name not in made:
                    made[each.name] = [
                        asdict(example) for example in await simulate_run(each, known, collection, facts)
                    ]
                    append_line(log, {"run": each.name, "examples": made[each.name]})
    found = [*found, *(Example(**each) for turn in turns for each in made[turn.name])]
    kept = mix_examples(found, budget=budget, seed=seed)
    await asyncio.to_thread(write_lines, folder / "all.jsonl", map(asdict, found))
    await asyncio.to_thread(write_lines, folder / "examples.jsonl", map(asdict, kept))
    return {
        "questions": dict(Counter(row["set"] for row in known.questions)),
        "with_steps": dict(Counter(row["set"] for row in known.questions if _has_steps(row))),
        "seed": seed,
        "found": dict(sorted(Counter(example.prompt for example in found).items())),
        "examples": count_by_prompt(kept),
    }


def main(
    files: Annotated[list[Path], typer.Argument(help="Training questions with their paragraphs, in JSON Lines.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    triples: Annotated[list[Path], typer.Option(help="Files with lines of title, text and triples of a passage.")] = [],  # noqa: B006 - never changed
    claims: Annotated[tuple[Path, Path] | None, typer.Option(help="SciFact's claims, and its abstracts.")] = None,
    methods: Annotated[str, typer.Option(help="The methods to play.")] = ",".join(METHODS),
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A setting of these methods.")
    ] = None,
    unaided: Annotated[
        Path | None, typer.Option(help="`results.jsonl` of closed-book on these questions, for RAS's [NO_RETRIEVAL].")
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Runs to play; default: all.")] = None,
    tokens: Annotated[float, typer.Option(help="About how many tokens the examples may have.")] = BUDGET,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
) -> None:
    """Make examples for all roles, and print how many of each."""
    known = read(files)
    turns = plan_runs(
        known,
        seed=seed,
        limit=limit,
        methods=methods.split(","),
        values=parse_pairs(set_),
        unaided=read_unaided(unaided) if unaided else frozenset(),
    )
    found, triples_of = extractions(triples)
    found += attributions(*claims) if claims else []
    card = asyncio.run(make(known, turns, found, PassageFacts(triples_of), out, budget=tokens, seed=seed))
    used = [*files, *triples, *(claims or ())]
    card["files"] = {f"{file.parent.name}/{file.name}": sha256(file.read_bytes()).hexdigest() for file in used}
    (out / "card.json").write_text(json.dumps(card, indent=1) + "\n", encoding="utf-8")
    typer.echo(json.dumps(card, indent=1))


if __name__ == "__main__":
    run_cli(lambda: typer.run(main))
