"""Cases for tests of methods: a shelf instead of indexes, chains of the example questions, and one execution."""

import asyncio
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from scripted_model import Replying, ScriptedModel, reply

from sleuth.agents.model import Reply, Request, TokenLogprob
from sleuth.graphs.baselines import plain_rag
from sleuth.graphs.chat.sending import send
from sleuth.graphs.core.answer import Answer, Note
from sleuth.graphs.core.context import Budget, Context, MethodSettings
from sleuth.graphs.methods.crp_rag import graph as crp_rag
from sleuth.graphs.methods.par_rag import graph as par_rag
from sleuth.graphs.methods.ras import graph as ras
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.search.retriever import Query
from sleuth.tools.search.vectors.embedder import Embedder
from sleuth.tools.storage.archive import MemoryArchive
from sleuth.tools.types import Hit, Passage

EXAMPLES = Path(__file__).parents[3] / "examples" / "questions.jsonl"

Json = dict[str, Any]

RunsFor = Callable[..., RunService]
"""Makes runs over a model of one's own."""


def passage(id: str, text: str, *, at: int = 100) -> Passage:
    """Return a passage that does not start its document, so that offsets cannot be right by chance."""
    return Passage(id=id, document_id=f"doc-{id}", title=id.title(), text=text, start=at, end=at + len(text))


@dataclass
class Shelf:
    """A retriever that returns the same passages for every query without passages of its own."""

    passages: list[Passage]
    found: Mapping[str, list[Passage]] = field(default_factory=dict)
    queries: list[Query] = field(default_factory=list)

    async def search(self, query: Query) -> list[Hit]:
        self.queries.append(query)
        passages = self.found.get(query.text, self.passages)[: query.k]
        return [Hit(passage=passage, score=1 / rank, rank=rank) for rank, passage in enumerate(passages, start=1)]

    def asked(self) -> list[tuple[str, str, int]]:
        """Return text, mode and number of passages of every query."""
        return [(query.text, query.mode, query.k) for query in self.queries]


def down_once(answer: Callable[[Request], Any], at: int) -> Callable[[Request], Any]:
    """Return replies as of a server that is down at one call."""
    calls = iter(range(1, 1_000_000))
    return lambda request: ModelUnavailable("It is down: start it.") if next(calls) == at else answer(request)


class FailingLate(Replying):
    """A model whose error comes after the replies that are in flight: those are stored."""

    async def call(self, request: Request) -> Reply:
        try:
            return await super().call(request)
        except ModelUnavailable:
            await asyncio.sleep(0.5)
            raise


@dataclass(frozen=True)
class Hop:
    """One step of an example question: its planned question, and the one asked after the steps before it."""

    planned: str
    asked: str
    answer: str
    needs: list[int]
    passage: Passage

    def draft(self, source: int) -> Json:
        """Return the drafter's reply; its quote does not contain the answer, so that the draft is reviewed."""
        citations = [{"source": source, "quote": "More follows"}] if self.answer else []
        return {"answer": self.answer, "citations": citations}


@dataclass(frozen=True)
class Chain:
    """An example question as a chain of hops."""

    question: str
    answer: str
    hops: list[Hop]

    @property
    def passages(self) -> list[Passage]:
        return [hop.passage for hop in self.hops]

    def plan(self) -> list[Json]:
        return [{"thought": "", "question": hop.planned, "action": "Retrieve", "needs": hop.needs} for hop in self.hops]

    def final(self) -> Json:
        return {"known": bool(self.answer), "answer": self.answer}

    def replies(self) -> list[Any]:
        """Return the replies of a model that makes no mistake: every review passes."""
        said: list[Any] = [self.plan()]
        for at, hop in enumerate(self.hops, start=1):
            said += [{"question": hop.asked}] if hop.needs else []
            said += [hop.draft(at), {"status": "PASS"}]
        return [*said, self.final()]

    def reply_to(self, request: Request) -> Json | list[Json]:
        """Return the same replies in any order of requests."""
        question = request.input["question"]
        by_planned = {hop.planned: hop for hop in self.hops}
        by_asked = {hop.asked: (at, hop) for at, hop in enumerate(self.hops, start=1)}
        match request.role:
            case "planner":
                return self.plan()
            case "refiner":
                return {"question": by_planned[question].asked}
            case "drafter":
                at, hop = by_asked[question]
                return hop.draft(at)
            case "reviewer":
                return {"status": "PASS"}
            case "reader":
                return {"answerable": True, "answer": self.answer, "citations": []}
        return self.final()


def example(id: str) -> Chain:
    """Return a chain from the example questions; each hop's passage contains only its own answer."""
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    record = next(record for record in map(json.loads, lines) if record["id"] == id)
    answers = [hop["answer"] for hop in record["decomposition"]]
    hops = []
    for at, hop in enumerate(record["decomposition"], start=1):
        needs = [earlier for earlier in range(1, at) if f"#{earlier}" in hop["question"]]
        asked = hop["question"]
        for need in needs:
            asked = asked.replace(f"#{need}", answers[need - 1])
        found = f"this is known: {hop['answer']}" if hop["answer"] else "nothing is known"
        text = f"An article from {hop['gold_id']}.\nOf {asked.rstrip('?')} {found}. More follows."
        hops.append(Hop(hop["question"], asked, hop["answer"], needs, passage(f"{id}-{at}", text)))
    return Chain(record["question"], record["answer"], hops)


Graph = Callable[[], StateGraph[Any, Context, Any, Any]]


@cache
def without_checkpoints(graph: Graph) -> CompiledStateGraph[Any, Context, Any, Any]:
    """Return a compiled method; compiling takes longer than a run."""
    return graph().compile()


@dataclass
class Case:
    """One method with what it needs, in a thread that can be resumed."""

    graph: Graph
    model: Replying
    retriever: Shelf
    settings: MethodSettings
    budget: Budget = field(default_factory=Budget)
    embedder: Embedder | None = None
    archive: MemoryArchive = field(default_factory=MemoryArchive)
    saver: InMemorySaver = field(default_factory=InMemorySaver)
    nodes: list[str] = field(default_factory=list)
    state: Json = field(default_factory=dict)

    async def run(self, question: str, notes: Mapping[str, Note] | None = None, **context: Any) -> Json:
        """Run from the beginning, or from the latest checkpoint; return the verdict."""
        given = {"question": question, "notes": dict(notes or {})}
        made = self._context(**context)
        compiled = without_checkpoints(self.graph).copy({"checkpointer": self.saver})
        config: Any = {"configurable": {"thread_id": "1"}}
        begun = await self.saver.aget_tuple(config)
        async for event in compiled.astream(None if begun else given, config, context=made, stream_mode="tasks"):
            if event["name"] in compiled.nodes and "result" not in event:
                self.nodes.append(event["name"])
        self.state = (await compiled.aget_state(config)).values
        verdict: Json = self.state["verdict"]
        return verdict

    def prompts(self) -> list[str]:
        """Return the prompts of all calls, in order."""
        return [request.prompt for request in self.model.requests]

    def _context(self, **more: Any) -> Context:
        return Context(
            model=self.model,
            retriever=self.retriever,
            archive=self.archive,
            settings=self.settings,
            budget=self.budget,
            embedder=self.embedder,
            **more,
        )


def model_of(replies: Iterable[Any] | Replying) -> Replying:
    return replies if isinstance(replies, Replying) else ScriptedModel(replies)


def par(
    replies: Iterable[Any] | Replying, passages: list[Passage], settings: MethodSettings | None = None, **more: Any
) -> Case:
    """PAR-RAG with a model, or with the replies that it gives in order."""
    return Case(par_rag.graph, model_of(replies), Shelf(passages), settings or par_rag.Settings(), **more)


def plain(replies: Iterable[Any], passages: list[Passage], settings: MethodSettings | None = None, **more: Any) -> Case:
    """Plain RAG with the replies that its model gives in order."""
    graph = METHODS["plain-rag"].graph
    return Case(graph, ScriptedModel(replies), Shelf(passages), settings or plain_rag.Settings(), **more)


def sure(text: str, perplexity: float = 1.5) -> Reply:
    """A plain reply whose tokens have this perplexity."""
    top = -math.log(perplexity)
    pieces = [text[:1], text[1:]] if len(text) > 1 else [text]
    return reply(text, logprobs=[TokenLogprob(token=piece, logprob=top, top={piece: top}) for piece in pieces])


def crp(
    replies: Iterable[Any] | Replying, passages: list[Passage], settings: MethodSettings | None = None, **more: Any
) -> Case:
    """CRP-RAG with a model, or with the replies that it gives in order."""
    return Case(crp_rag.graph, model_of(replies), Shelf(passages), settings or crp_rag.Settings(), **more)


def structured(
    replies: Iterable[Any] | Replying, retriever: Shelf, settings: MethodSettings | None = None, **more: Any
) -> Case:
    """RAS with a model, or with the replies that it gives in order."""
    return Case(ras.graph, model_of(replies), retriever, settings or ras.Settings(), **more)


def resolves(citation: Mapping[str, Any], shown: Iterable[Passage]) -> bool:
    """Return whether a citation is literally at its place in a shown passage."""
    return any(
        citation["passage"] == each.id
        and citation["document"] == each.document_id
        and each.start <= citation["start"] < citation["end"] <= each.end
        and each.text[citation["start"] - each.start : citation["end"] - each.start] == citation["quote"]
        for each in shown
    )


async def finish(runs: RunService, thread: str, **more: Any) -> Answer:
    """Run a thread to its end."""
    events = [event async for event in runs.run(thread, **more)]
    assert isinstance(events[-1], Answer)
    return events[-1]


async def ask(runs: RunService, question: str, method: str = "par-rag", **options: Any) -> Answer:
    """Start a run, or send a message to its thread, and run it to its end."""
    return await finish(runs, await send(runs, RunRequest(question=question, method=method, **options)))


def sent(requests: Iterable[Request]) -> list[tuple[Any, ...]]:
    """Return the parts of requests that are the same in a repeated run: everything but their ids."""
    return [(each.prompt, each.messages, each.sampling, each.schema, each.choices) for each in requests]
