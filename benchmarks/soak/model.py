"""The soak test's model server: replies immediately with what a request's schema allows, and sometimes fails.

    python -m benchmarks.soak.model PORT FAULTS SEED

FAULTS is the share of requests that go wrong, for replies and for embeddings. Replies are words of the request itself,
so that some quotes are in their sources; vectors are those of benchmarks/growth/measures.py.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from random import Random
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks.growth.measures import Projected

SILENCE = 30.0
"""Seconds; longer than the server under test waits."""
FAULTS = ("500", "503", "429", "half", "schema", "cut", "silence")
EMBEDDING_FAULTS = FAULTS[:-1]
"""Seconds of a slow embedder, which also delays other writers."""


def fitting(schema: dict[str, Any], dice: Random, words: list[str], whole: dict[str, Any] | None = None) -> Any:  # noqa: ANN401
    """Return a value that a JSON schema allows, as far as our prompts' schemas go."""
    whole = whole or schema
    if "$ref" in schema:
        return fitting(whole["$defs"][schema["$ref"].rpartition("/")[2]], dice, words, whole)
    if "anyOf" in schema:
        return fitting(dice.choice(schema["anyOf"]), dice, words, whole)
    if "enum" in schema or "const" in schema:
        return dice.choice(schema.get("enum") or [schema["const"]])
    return _typed(schema, dice, words, whole)


def _typed(schema: dict[str, Any], dice: Random, words: list[str], whole: dict[str, Any]) -> Any:  # noqa: ANN401
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
    """One server; `rate` is the share of requests that go wrong."""

    def __init__(self, rate: float, seed: str) -> None:
        self._rate = rate
        self._dice = Random(seed)
        self._vectors = Projected()
        self._met: Counter[str] = Counter()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self.models),
                Route("/met", self.met),
                Route("/tokenize", self.tokenize, methods=["POST"]),
                Route("/v1/embeddings", self.embed, methods=["POST"]),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
            ]
        )

    async def models(self, _request: Request) -> Response:
        return JSONResponse({"data": [{"id": "standin", "max_model_len": 32768}]})

    async def met(self, _request: Request) -> Response:
        """Return the number of requests, and of each kind of fault."""
        return JSONResponse(self._met)

    async def tokenize(self, request: Request) -> Response:
        asked = await request.json()
        return JSONResponse({"count": sum(len(each["content"].split()) for each in asked["messages"])})

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
        said = '{"unexpected": 1}' if fault == "schema" else self._say(asked)
        if asked.get("stream") and fault not in ("half", "cut"):
            return StreamingResponse(_streamed(said), media_type="text/event-stream")
        return _sent(_completion({"message": {"role": "assistant", "content": said}}) | {"usage": USAGE}, fault)

    def _fault(self, what: str, faults: Sequence[str]) -> str:
        """Choose the fault of a request, if any; count both."""
        fault = self._dice.choice(faults) if self._dice.random() < self._rate else ""
        self._met.update([f"{what} requests", *([f"{what} fault {fault}"] if fault else [])])
        return fault

    def _say(self, asked: dict[str, Any]) -> str:
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


USAGE = {"prompt_tokens": 1000, "completion_tokens": 50, "total_tokens": 1050}


def _completion(choice: dict[str, Any], kind: str = "chat.completion") -> dict[str, Any]:
    about = {"id": "1", "object": kind, "created": 0, "model": "standin"}
    return about | {"choices": [{"index": 0, "finish_reason": "stop", "logprobs": None} | choice]}


async def _streamed(said: str) -> AsyncIterator[str]:
    kind = "chat.completion.chunk"
    for at in range(0, len(said), 40):
        chunk = _completion(
            {"delta": {"role": "assistant", "content": said[at : at + 40]}, "finish_reason": None}, kind
        )
        yield f"data: {json.dumps(chunk)}\n\n"
    yield f"data: {json.dumps(_completion({'delta': {}}, kind))}\n\n"
    yield f"data: {json.dumps(_completion({}, kind) | {'choices': [], 'usage': USAGE})}\n\n"
    yield "data: [DONE]\n\n"


def main() -> None:
    port, rate, seed = sys.argv[1:]
    app = Standin(float(rate), seed).app()
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="critical", ws="none", lifespan="off")


if __name__ == "__main__":
    main()
