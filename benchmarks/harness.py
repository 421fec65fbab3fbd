"""Shared by the studies: their options, a collection with its questions, and one simulated run in this process.

Everything that comes out of it is simulated: it shows the effect of errors of given rates on the control flow of a
method, not how well a language model answers.
"""

import argparse
import gzip
import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from langgraph.checkpoint.memory import InMemorySaver

from sleuth.agents.model import Model
from sleuth.graphs.core import Context, MethodSettings
from sleuth.graphs.ingestion import ingest
from sleuth.graphs.methods.auto import graph as auto
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs import CheckpointerSubruns
from sleuth.studio.simulation import Gold, gold_of
from sleuth.tools.collection import Collection, FileCursor
from sleuth.tools.search import Mode, Query, Retriever
from sleuth.tools.search.vectors import Embedder, Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.sources.question_attributes import Predictor
from sleuth.tools.storage import MemoryArchive
from sleuth.tools.types import Hit

EXAMPLES = Path(__file__).parents[1] / "examples"
PARAMETERS = Path(__file__).with_name("simulation.toml")
"""Error rates of the simulated model, fixed before the studies were run."""

NO_LIMIT = 100_000


def options(description: str | None, *names: str, **defaults: object) -> argparse.ArgumentParser:
    """Return a parser with the options that studies share.

    Args:
        description: the study's docstring.
        names: which of `corpus`, `questions`, `set`, `limit`, `every`, `k`, `mode`, `methods`, `simulate`, `home`
            and `out`.
        defaults: of these; a positional file with a default is optional.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in names:
        flags, about = _OPTIONS[name]
        given = {"default": defaults[name]} if name in defaults else {}
        optional = {"nargs": "?"} if name in defaults and not flags[0].startswith("-") else {}
        parser.add_argument(*flags, **{**about, **given, **optional})
    return parser


_OPTIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "corpus": (("corpus",), {"type": Path}),
    "questions": (("questions",), {"type": Path}),
    "set": (
        ("--set",),
        {"type": Path, "nargs": 2, "action": "append", "required": True, "metavar": ("CORPUS", "QUESTIONS")},
    ),
    "limit": (("--limit",), {"type": int, "help": "number of questions of each file"}),
    "every": (("--every",), {"type": int, "default": 1, "help": "use every Nth question"}),
    "k": (("-k",), {"type": int, "default": 5, "help": "number of passages"}),
    "mode": (("--mode",), {"choices": ("keyword", "hybrid", "graph"), "default": "keyword"}),
    "methods": (("--methods",), {"nargs": "*", "choices": METHODS, "default": []}),
    "simulate": (("--simulate",), {"default": "", "help": "error rates of the simulated model; none by default"}),
    "home": (("--home",), {"type": Path, "help": "a SLEUTH_HOME that contains the corpus already"}),
    "out": (("--out",), {"type": Path, "required": True, "help": "output folder"}),
}


def rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


class Remembering:
    """An embedder that embeds no text twice: runs ask for the same steps again and again."""

    def __init__(self, embedder: Embedder) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}

    def embed_passages(self, texts: list[str]) -> Vectors:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= dict(zip(new, self._embedder.embed_passages(new), strict=True))
        return np.stack([self._known[text] for text in texts])

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_passages([text])[0]
        return vector


@dataclass(frozen=True)
class Collection:
    """Documents to search, and the gold of the questions about them."""

    library: Collection
    golds: list[Gold]
    embedder: Embedder | None


@asynccontextmanager
async def collection(
    corpus: Path, questions: Path, mode: Mode, *, limit: int | None = None, home: Path | None = None
) -> AsyncIterator[Collection]:
    """Open the documents read in, with vectors only where the mode needs them, and the questions whose
    gold is known.
    """
    with tempfile.TemporaryDirectory() as scratch:
        settings = Settings(home=home or Path(scratch))
        if mode != "keyword":
            await ingest([corpus], settings=settings)
        async with await Collection.open(settings) as library:
            if mode == "keyword":
                await _read_in(library, corpus, Path(scratch) / "files")
            embedder = Remembering(library.embedder) if library.embedder else None
            yield Collection(library, await golds(library, questions, limit), embedder)


async def golds(library: Collection, questions: Path, limit: int | None = None) -> list[Gold]:
    """Return the gold of questions whose gold passages are in the library; with a limit the first ones."""
    known = await _passages(library)
    return [gold_of(row, known) for row in [row for row in rows(questions) if row.get("gold_ids")][:limit]]


async def _read_in(library: Collection, corpus: Path, worklist: Path) -> None:
    await library.list_files(worklist, [corpus])
    place: FileCursor | None = FileCursor()
    while place is not None:
        batch, _ = await library.ingest_batch(worklist, place)
        place = batch.next_place


async def _passages(library: Collection) -> dict[str, tuple[str, str]]:
    """Return titles and whole texts of documents, by id and by file name."""
    known: dict[str, tuple[str, str]] = {}
    after = ""
    while listed := await library.documents(limit=1000, after=after):
        for each in listed:
            document = await library.document(each.id)
            known[each.id] = known[Path(each.source).name] = (document.title, document.text)
        after = listed[-1].id
    return known


class Found:
    """A retriever that searches for nothing twice: the cells ask the same again and again."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self._known: dict[Query, list[Hit]] = {}

    async def search(self, query: Query) -> list[Hit]:
        if query not in self._known:
            self._known[query] = await self._retriever.search(query)
        return self._known[query]


@dataclass
class Book:
    """The runs made so far, in a file that grows by a line for each."""

    file: Path
    runs: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def opened(cls, folder: Path) -> "Book":
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "runs.jsonl"
        whole = file.read_text("utf-8").splitlines(keepends=True) if file.exists() else []
        kept = [line for line in whole if line.endswith("\n")]  # the last one may have been cut short
        file.write_text("".join(kept), encoding="utf-8")
        return cls(file, {made["key"]: made for made in map(json.loads, kept)})

    def add(self, made: dict[str, Any]) -> None:
        self.runs[made["key"]] = made
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(made) + "\n")


@dataclass
class Outcome:
    """The outcome of a run: right, refused (not answered for any reason), or wrong."""

    kind: str
    calls: int
    text: str
    state: dict[str, Any] = field(repr=False)


async def run(
    name: str,
    gold: Gold,
    model: Model,
    retriever: Retriever,
    *,
    embedder: Embedder | None,
    settings: MethodSettings,
    predictor: Predictor | None = None,
) -> Outcome:
    """Return one question by one method, without a store."""
    context = Context(
        model=model,
        retriever=retriever,
        archive=MemoryArchive(),
        settings=settings,
        embedder=embedder,
        predictor=predictor,
    )
    context = replace(context, hops=CheckpointerSubruns(saver=InMemorySaver(), context=context))
    compiled = METHODS[name].graph().compile()
    state = await compiled.ainvoke({"question": gold.question}, {"recursion_limit": NO_LIMIT}, context=context)
    verdict = state["verdict"]
    return Outcome(kind_of(gold, verdict), len(state["calls"]), verdict["text"], state)


def kind_of(gold: Gold, verdict: dict[str, Any]) -> str:
    """Return an answer to what has none is wrong, and so is one that names more than the right one."""
    if verdict["status"] != "answered":
        return "refused"
    text = verdict["text"]
    return "right" if gold.right(text) and " or " not in text else "wrong"


def at_mode(settings: MethodSettings, mode: Mode) -> MethodSettings:
    """Return the settings with every search in one mode."""
    if isinstance(settings, auto.Settings):
        hops = {name: dict.fromkeys(_modes(METHODS[name].settings), mode) for name in auto.METHODS}
        return settings.model_copy(update={"hop_settings": hops})
    return settings.model_copy(update=dict.fromkeys(_modes(type(settings)), mode))


def _modes(kind: type[MethodSettings]) -> list[str]:
    return [name for name in kind.model_fields if name.endswith("mode")]
