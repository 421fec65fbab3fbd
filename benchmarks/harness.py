"""Shared by the benchmarks: the example questions, clocks, and work in a process of its own."""

import json
import resource
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np

from sleuth.agents.model import Message, NamedModel, Reply, Request, Usage
from sleuth.studio.evaluation.run_folder import read_lines
from sleuth.tools.collection import Collection
from sleuth.tools.search.vectors import Vectors
from sleuth.tools.settings import Settings
from training.simulation import Gold, gold_of

EXAMPLES = Path(__file__).parents[1] / "examples"
DIMENSION, RANK, BUCKETS = 384, 64, 1 << 15

P = ParamSpec("P")
R = TypeVar("R")


def processor_seconds(who: int) -> float:
    """Return the processor time of this process (RUSAGE_SELF), or of child processes that ended (RUSAGE_CHILDREN)."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock, and of processor time: of this process and of child processes that have ended."""

    wall: float = 0.0
    cpu: float = 0.0

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.wall + other.wall, self.cpu + other.cpu)

    def __sub__(self, other: "Spent") -> "Spent":
        return Spent(self.wall - other.wall, self.cpu - other.cpu)

    @classmethod
    def so_far(cls) -> "Spent":
        return cls(time.perf_counter(), time.process_time() + processor_seconds(resource.RUSAGE_CHILDREN))


class Clock:
    """The time that was spent in its blocks."""

    def __init__(self) -> None:
        self.spent = Spent()

    @contextmanager
    def running(self) -> Iterator[None]:
        began = Spent.so_far()
        try:
            yield
        finally:
            self.spent += Spent.so_far() - began


@contextmanager
def clock() -> Iterator[Clock]:
    taken = Clock()
    with taken.running():
        yield taken


class Projected:
    """Embedder without a model: a text is the sum of random directions, one for each of its longer words.

    The directions have only `RANK` degrees of freedom. A neighbor graph of 10,000 such vectors finds as many of the
    nearest as one of the default model's vectors; with free directions it finds far fewer.
    """

    name = "projected"

    def __init__(self) -> None:
        self.seconds = 0.0
        random = np.random.default_rng(0)
        free = random.standard_normal((BUCKETS, RANK), dtype=np.float32)
        self._directions = free @ random.standard_normal((RANK, DIMENSION), dtype=np.float32)

    def embed_passages(self, texts: list[str]) -> Vectors:
        began = time.perf_counter()
        rows = np.stack([self.embed_query(text) for text in texts])
        self.seconds += time.perf_counter() - began
        return rows

    def embed_query(self, text: str) -> Vectors:
        words = [word for word in text.lower().split() if len(word) > 4] or [text]
        at = [zlib.crc32(word.strip(".?").encode()) % BUCKETS for word in words]
        vector = self._directions[at].sum(axis=0)
        unit: Vectors = vector / max(float(np.linalg.norm(vector)), 1e-9)
        return unit


def in_own_process(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Return the result of a module's function in a new process, whose peak memory is that of this work."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *args, **kwargs).result()


def write_json(file: Path, value: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


async def golds(collection: Collection) -> list[Gold]:
    """Return the gold of the example questions that have gold passages, which are in the collection."""
    passages: dict[str, tuple[str, str]] = {}
    after = ""
    while listed := await collection.documents(limit=1000, after=after):
        for each in listed:
            document = await collection.document(each.id)
            passages[each.id] = passages[Path(each.source).name] = (document.title, document.text)
        after = listed[-1].id
    return [gold_of(row, passages) for row in read_lines(EXAMPLES / "questions.jsonl") if row.get("gold_ids")]


class Instant:
    """A model that replies immediately."""

    context_window = 8192

    def name_of(self, role: str) -> str:
        return "instant"

    async def call(self, request: Request) -> Reply:
        text = json.dumps({"answer": "keeper 49", "citations": [], "answerable": True})
        usage = Usage(prompt_tokens=100, cached_tokens=0, completion_tokens=10)
        return Reply(text=text, finish="stop", model="instant", usage=usage, seconds=0.0, logprobs=None, warnings=[])

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return 100


@asynccontextmanager
async def instant(_settings: Settings) -> AsyncIterator[NamedModel]:
    yield Instant()
