"""A model server that replies with what a request's schema allows, and sometimes fails.

Replies are words of the request itself, so that some quotes are in their sources.
"""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.harness import Projected
from benchmarks.servers import USAGE, completion, model_routes, serve_app

SILENCE = 30.0
"""Seconds; longer than the server under test waits."""
FAULTS = ("500", "503", "429", "half", "schema", "cut", "silence")
EMBEDDING_FAULTS = FAULTS[:-1]
"""Without silence, which would also delay other writers."""


def fitting(schema: dict[str, Any], dice: Random, words: list[str], whole: dict[str, Any] | None = None) -> Any:
    """Return a value that a JSON schema allows, as far as our prompts' schemas go."""
    whole = whole or schema
    if "$ref" in schema:
        return fitting(whole["$defs"][schema["$ref"].rpartition("/")[2]], dice, words, whole)
    if "anyOf" in schema:
        return fitting(dice.choice(schema["anyOf"]), dice, words, whole)
    if "enum" in schema or "const" in schema:
        return dice.choice(schema.get("enum") or [schema["const"]])
    return _typed(schema, dice, words, whole)


def _typed(schema: dict[str, Any], dice: Random, words: list[str], whole: dict[str, Any]) -> Any:
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {}).items()
            return {name: fitting(each, dice, words, whole) for name, each in fields}
        case "array":
            count = dice.randint(schema.get("minItems", 0), min(3, schema.get("maxItems", 3)))
            return [fitting(schema["items"], dice, words, whole) for _ in range(count)]
        case "integer" | "number":
            return dice.randint(int(schema.get("minimum", 0)), int(min(schema.get("maximum", 5), 5)))
        case "boolean":
            return dice.random() < 0.8
        case "null":
            return None
        case _:
            at = dice.randrange(max(1, len(words) - 6))
            return " ".join(words[at : at + dice.randint(1, 6)])[: schema.get("maxLength", 200)] or "amber"


class Standin:
    """One server; `rate` is the share of requests that fail, `first` the seconds before a streamed reply begins."""

    def __init__(self, rate: float, first: float) -> None:
        self._rate = rate
        self._first = first
        self._dice = Random(0)
        self._vectors = Projected()
        self._counts: Counter[str] = Counter()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                *model_routes(),
                Route("/counts", self.counts),
                Route("/v1/embeddings", self.embed, methods=["POST"]),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
            ]
        )

    async def counts(self, _request: Request) -> Response:
        """Return the number of requests, and of each kind of fault."""
        return JSONResponse(self._counts)

    async def embed(self, request: Request) -> Response:
        texts = (await request.json())["input"]
        fault = self._fault("embedding", EMBEDDING_FAULTS)
        rows = self._vectors.embed_passages(texts)
        vectors = {"data": [{"index": at, "embedding": row.tolist()} for at, row in enumerate(rows)]}
        return _broken(fault) or _sent({"unexpected": 1} if fault == "schema" else vectors, fault)

    async def chat(self, request: Request) -> Response:
        asked, fault = await request.json(), self._fault("model", FAULTS)
        if broken := _broken(fault):
            return broken
        if fault == "silence":
            await asyncio.sleep(SILENCE)
        text = '{"unexpected": 1}' if fault == "schema" else self._reply_to(asked)
        if asked.get("stream") and fault not in ("half", "cut"):
            return StreamingResponse(_streamed(text, self._first), media_type="text/event-stream")
        return _sent(completion({"message": {"role": "assistant", "content": text}}) | {"usage": USAGE}, fault)

    def _fault(self, what: str, faults: Sequence[str]) -> str:
        """Choose the fault of a request, if any; count both."""
        fault = self._dice.choice(faults) if self._dice.random() < self._rate else ""
        self._counts.update([f"{what} requests", *([f"{what} fault {fault}"] if fault else [])])
        return fault

    def _reply_to(self, asked: dict[str, Any]) -> str:
        words = str(asked["messages"][-1]["content"]).split()
        if guide := asked.get("response_format"):
            return json.dumps(fitting(guide["json_schema"]["schema"], self._dice, words))
        if guide := asked.get("structured_outputs"):
            return str(self._dice.choice(guide["choice"]))
        return " ".join(words[-8:]) or "amber"


def _broken(fault: str) -> Response | None:
    """Return a refusal, where the fault is a status."""
    headers = {"Retry-After": "0.05"} if fault == "429" else {}
    return Response(status_code=int(fault), headers=headers) if fault.isdigit() else None


def _sent(value: object, fault: str) -> Response:
    """JSON; of which half is left, or which ends before its length."""
    body = json.dumps(value).encode()
    if fault == "half":
        return Response(body[: len(body) // 2], media_type="application/json")
    length = {"Content-Length": str(len(body) + (100 if fault == "cut" else 0))}
    return Response(body, media_type="application/json", headers=length)


async def _streamed(text: str, first: float) -> AsyncIterator[str]:
    await asyncio.sleep(first)
    kind = "chat.completion.chunk"
    deltas = [{"role": "assistant", "content": text[at : at + 40]} for at in range(0, len(text), 40)]
    chunks = [completion({"delta": delta, "finish_reason": None}, kind) for delta in deltas]
    end = [completion({"delta": {}}, kind), completion({}, kind) | {"choices": [], "usage": USAGE}]
    for chunk in [*chunks, *end]:
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def serve(port: int, rate: float, first: float = 0.0) -> None:
    serve_app(Standin(rate, first).app(), port)
