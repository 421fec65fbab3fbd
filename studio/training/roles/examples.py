"""Makes examples for tuning: `python -m sleuth.studio.training.roles.examples TRAIN... --out FOLDER`.

Every training question is played by several methods with a simulated model, over real retrieval from all the files'
paragraphs; what each role should have said at each call is written down with the very prompt that it was sent.
"""

import asyncio
import json
import sys
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from sleuth.agents.desk import messages
from sleuth.agents.extractor import EXTRACT, MOST, ExtractInput, Extraction, Triple
from sleuth.agents.simulation import Simulation, gold_of
from sleuth.agents.sources import Source
from sleuth.graphs.hops import NO_LIMIT, compiled
from sleuth.graphs.ingest import ingest
from sleuth.graphs.registry import method
from sleuth.graphs.state import Context
from sleuth.studio.cli import guarded
from sleuth.studio.training.roles.questions import TrainingSet, read
from sleuth.studio.training.roles.teacher import Example, Teacher, Withholding
from sleuth.tools.archive import MemoryArchive
from sleuth.tools.library import Library
from sleuth.tools.retriever import Retriever
from sleuth.tools.settings import Settings
from sleuth.tools.triple_files import triple_lines

LONGEST = 8_000
"""Characters of a prompt; longer ones cost more than they teach."""
METHODS = ("plain-rag", "par-rag", "crp-rag", "retro-rag", "ras")
WITHHELD = 0.15
"""Share of the plays in which one passage that a question needs is not to be found."""
STUDENT = {"missed": 0.15, "invented": 0.15, "wrong-question": 0.1, "flattering": 0.2, "overconfident": 0.2}
"""How often the roles before have erred."""
WHOLE_QUESTION = frozenset({"reader", "verifier", "answerer", "evaluator"})
"""Roles that can be taught by several steps that are only derived: the others' replies would speak of the steps."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Play:
    """A question by a method."""

    row: dict[str, Any]
    method: str
    seed: int

    @property
    def dice(self) -> Random:
        """The same for the same play, whatever else is played."""
        mark = sha256(f"{self.seed}\n{self.row['set']}\n{self.row['id']}\n{self.method}".encode()).digest()
        return Random(mark)  # noqa: S311 - repeatable by design


async def play(each: Play, known: TrainingSet, retriever: Retriever) -> list[Example]:
    """What is to be learned from one run."""
    gold = gold_of(each.row, {id: known.passages[id] for id in each.row["gold_ids"]})
    dice = each.dice
    gone = [dice.choice(each.row["gold_ids"])] if dice.random() < WITHHELD else []
    teacher = Teacher(gold, Simulation(seed=dice.randrange(2**31), rates=STUDENT))
    kind = method(each.method)
    context = Context(
        model=teacher,
        retriever=Withholding(retriever, gone),
        archive=MemoryArchive(),
        settings=kind.configure({}, "default"),
    )
    place = RunnableConfig(configurable={"thread_id": "1"}, recursion_limit=NO_LIMIT)
    await compiled(each.method, InMemorySaver()).ainvoke({"question": gold.question}, place, context=context)
    derived = gold.origin == "derived" and len(gold.hops) > 1
    wanted = [example for example in teacher.examples if not derived or example.role in WHOLE_QUESTION]
    return [example for example in wanted if example.role != "extractor"]


def extractions(files: Sequence[Path]) -> list[Example]:
    """What the extractor should have said of each passage in files such as `sleuth triples import` reads."""
    return [
        Example(
            question=line.title, role=EXTRACT.name, prompt=EXTRACT.prompt, messages=messages(EXTRACT, given), reply=said
        )
        for file in files
        for line in triple_lines(file)
        if line.text
        for given in [ExtractInput(sources=(Source(title=line.title, text=line.text),))]
        for said in [_extraction(line.triples)]
    ]


def _extraction(triples: Iterable[tuple[str, str, str]]) -> str:
    fields = [
        Triple(subject=subject[:100], predicate=predicate[:80], object=object[:160])
        for subject, predicate, object in triples
    ]
    return Extraction(triples=fields[:MOST]).model_dump_json()


def plays(known: TrainingSet, *, seed: int, limit: int | None) -> list[Play]:
    """Every question with one method, drawn at random, then every question with another, until all had all."""
    dice = Random(seed)  # noqa: S311 - repeatable by design
    rows = [row for row in known.questions if row["gold_ids"]]
    orders = [dice.sample(METHODS, len(METHODS)) for _ in rows]
    shuffled = dice.sample(range(len(rows)), len(rows))
    turns = [Play(row=rows[at], method=orders[at][turn], seed=seed) for turn in range(len(METHODS)) for at in shuffled]
    return turns[:limit]


@asynccontextmanager
async def collection(known: TrainingSet, folder: Path) -> AsyncIterator[Library]:
    """All passages read into a home of their own below the folder; what is there already stays."""
    corpus = folder / "corpus.jsonl"
    await asyncio.to_thread(write_lines, corpus, known.corpus())
    settings = Settings(home=folder / "home", embedder="none")
    await ingest([corpus], settings=settings)
    async with await Library.open(settings) as library:
        yield library


def write_lines(file: Path, rows: Iterable[Any]) -> None:
    """One JSON value a line."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as lines:
        lines.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def chosen(found: Iterable[Example], *, per_prompt: int, seed: int) -> list[Example]:
    """At most so many of each prompt, drawn at random, none twice and none too long."""
    by_prompt: dict[str, dict[str, Example]] = defaultdict(dict)
    for example in found:
        sent = json.dumps(example.messages)
        if len(sent) <= LONGEST:
            by_prompt[example.prompt].setdefault(sent, example)
    dice = Random(seed)  # noqa: S311 - repeatable by design
    return [
        example
        for prompt in sorted(by_prompt)
        for example in dice.sample(list(by_prompt[prompt].values()), min(per_prompt, len(by_prompt[prompt])))
    ]


async def make(
    files: Sequence[Path], triples: Sequence[Path], folder: Path, *, limit: int | None, per_prompt: int, seed: int
) -> dict[str, Any]:
    """Writes `examples.jsonl` and its card; returns the card."""
    known = read(files)
    found = extractions(triples)
    async with collection(known, folder) as library:
        with typer.progressbar(plays(known, seed=seed, limit=limit), label="Playing", file=sys.stderr) as turns:
            for each in turns:
                found += await play(each, known, library)
    kept = chosen(found, per_prompt=per_prompt, seed=seed)
    await asyncio.to_thread(write_lines, folder / "examples.jsonl", map(asdict, kept))
    card = {
        "questions": dict(Counter(row["set"] for row in known.questions)),
        "seed": seed,
        "examples": dict(sorted(Counter(example.prompt for example in kept).items())),
        "files": {f"{file.parent.name}/{file.name}": sha256(file.read_bytes()).hexdigest() for file in files},
    }
    await asyncio.to_thread((folder / "card.json").write_text, json.dumps(card, indent=1) + "\n")
    return card


def main(
    files: Annotated[list[Path], typer.Argument(help="Training questions with their paragraphs, in JSON Lines.")],
    *,
    out: Annotated[Path, typer.Option(help="The folder to write to.")],
    triples: Annotated[list[Path], typer.Option(help="Triples of passages, as `sleuth triples import` reads.")] = [],  # noqa: B006 - never changed
    limit: Annotated[int | None, typer.Option(help="Runs to play; default: each question by each method.")] = None,
    per_prompt: Annotated[int, typer.Option(help="The most examples of one prompt.")] = 600,
    seed: Annotated[int, typer.Option(help="For whatever is drawn.")] = 0,
) -> None:
    """Make examples for all roles, and print how many of each."""
    card = asyncio.run(make(files, triples, out, limit=limit, per_prompt=per_prompt, seed=seed))
    typer.echo(json.dumps(card, indent=1))


if __name__ == "__main__":
    guarded(lambda: typer.run(main))
