"""Questions of the CRAG benchmark from their pages to their verdicts, with the hybrid system.

    python benchmarks/crag_examples.py CRAG_FILE [--model] [--set KEY=VALUE ...] [--limit N]

CRAG_FILE is JSON Lines as the benchmark has it, plain or packed. Every run is a durable one in a store of its own. By
default a stand-in replies, which always cites the last source and has nothing to calculate: it shows that every page
gets through and that every reference keeps within its length. --model asks the server of SLEUTH_MODEL_URL instead.
Questions that the SVM takes for dynamic end at once, --set fresh=true has them answered too.
Prints a line per question and the scores of the benchmark's rule match (+1, 0, -1; without a judge), then JSON.
"""

import argparse
import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

from sleuth.agents.model import Message, Model, Reply, Request, Usage
from sleuth.graphs.answer import Answer
from sleuth.graphs.ladder import Settings as Switches
from sleuth.graphs.references import Reference
from sleuth.graphs.runs import Runs, Services
from sleuth.graphs.store import open_store
from sleuth.studio.client import gateway_class
from sleuth.studio.evaluation.metrics import answer_scores
from sleuth.studio.evaluation.questions import GoldQuestion, read_questions
from sleuth.tools.attributes.svm import fitting
from sleuth.tools.embedder import make_embedder
from sleuth.tools.pages.chunks import chunk
from sleuth.tools.pages.page import PageText
from sleuth.tools.pages.reading import read_pages
from sleuth.tools.pages.retriever import PageRetriever
from sleuth.tools.settings import Settings


class StandIn:
    """Replies in form to every role; it knows nothing."""

    context_window = 32_768

    async def call(self, request: Request) -> Reply:
        sources = request.input.get("sources", ())
        quotes = [{"source": len(sources), "quote": sources[-1]["text"][:60]}] if sources else []
        replies: dict[str, Any] = {
            "calculator": {"expression": "year(today) - 2000"},
            "recaller": {"known": False},
            "querier": {"entities": []},
        }
        text = json.dumps(replies.get(request.role, {"answer": "a stand-in's answer", "citations": quotes}))
        usage = Usage(prompt_tokens=len(request.text()) // 4, cached_tokens=0, completion_tokens=len(text) // 4)
        return Reply(text=text, finish="stop", model="stand-in", usage=usage, seconds=0.0, logprobs=None, warnings=[])

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return sum(len(message["content"]) for message in messages) // 3


@asynccontextmanager
async def opened(settings: Settings, *, real: bool) -> AsyncIterator[Model]:
    if not real:
        yield StandIn()
        return
    async with gateway_class().open(settings) as gateway:
        yield gateway


async def ask(
    runs: Runs, asked: GoldQuestion, pages: list[PageText], values: dict[str, Any]
) -> tuple[Answer, list[Reference]]:
    """The answer, and the references that it was made from."""
    values = {"asked_at": asked.asked_at, **values}
    thread = await runs.start(asked.question, "hybrid-rag", values=values, pages=pages)
    answer = [event async for event in runs.run(thread)][-1]
    assert isinstance(answer, Answer)
    found = await runs.store.threads.get(thread)
    state = await runs.graph(found).aget_state(runs.config(found))
    return answer, state.values.get("references", [])  # a dynamic question ends without any


def counted(pages: list[PageText]) -> dict[str, int]:
    return {
        "pages": len(pages),
        "characters": sum(len(page.text) for page in pages),
        "tables": sum(len(page.tables) for page in pages),
        "chunks": sum(len(chunk(page.text, page.sentences).spans) for page in pages),
    }


def described(
    asked: GoldQuestion, read: list[PageText], answer: Answer, references: list[Reference], seconds: float
) -> dict[str, Any]:
    return {
        "question": asked.question,
        "given": len(asked.pages),
        **counted(read),
        "references": len(references),
        "shown": sum(each["shown"] for each in references),
        "kinds": sorted({each["kind"] for each in references}),
        "status": answer.status,
        "text": answer.text,
        "cited": [each.get("kind") for each in answer.citations],
        "crag": answer_scores(answer.status, answer.text, asked.answers)["crag"],
        "calls": answer.cost["calls"],
        "seconds": round(seconds, 2),
        "warnings": answer.warnings,
    }


HEAD = ("pages", "characters", "tables", "chunks", "references", "shown", "calls", "crag")


def line(found: dict[str, Any]) -> str:
    return "".join(f"{found[name]:>11,}" for name in HEAD) + f"  {found['status']}"


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crag", type=Path)
    parser.add_argument("--model", action="store_true", help="ask the server of SLEUTH_MODEL_URL")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--limit", type=int, help="only the first questions")
    args = parser.parse_args()
    [file] = read_questions([args.crag])
    values = dict(pair.split("=", 1) for pair in args.set)
    results = []
    print("".join(f"{name:>11}" for name in HEAD) + "  status")
    with tempfile.TemporaryDirectory() as home:
        settings = Settings(home=Path(home))
        async with opened(settings, real=args.model) as model, open_store(settings) as store:
            embedder = make_embedder(Settings())
            predictor = await asyncio.to_thread(fitting, Path(home), embedder)
            services = Services(model=model, retriever=PageRetriever([], None), embedder=embedder, predictor=predictor)
            runs = Runs(store, services)
            for asked in file.questions[: args.limit]:
                begun = monotonic()
                read = await read_pages(asked.pages)
                answer, references = await ask(runs, asked, read, values)
                results.append(described(asked, read, answer, references, monotonic() - begun))
                print(line(results[-1]), flush=True)
    most = Switches.model_validate(values).max_characters
    scores = [found["crag"] for found in results]
    summary = {
        "questions": len(results),
        "pages": sum(found["given"] for found in results),
        "within_length": all(found["shown"] <= most for found in results),
        "correct": scores.count(1.0),
        "missing": scores.count(0.0),
        "wrong": scores.count(-1.0),
        "crag": sum(scores) / len(scores),
    }
    print(json.dumps({"questions": results, "summary": summary}))


if __name__ == "__main__":
    asyncio.run(main())
