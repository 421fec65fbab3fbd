"""How much of their prompts methods find in the model server's prefix cache, and what the order in a prompt does to it.

    python benchmarks/prefix_cache.py [--methods NAME ...] [--limit 6] [--json FILE]

For the vLLM server of the settings, whose counters it reads; nobody else may use the server meanwhile. Each method
answers some of the example questions, one after the other, and its requests are recorded. They are sent again for one
token each, one after the other, with a cache of their own (`cache_salt`): as they are, which is instructions, passages,
then what changes; and with the passages last. "hits" is the share of prompt tokens that were cached.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from eight_at_once import EXAMPLES, recorder

import sleuth
from sleuth.graphs.ingest import ingest
from sleuth.graphs.registry import METHODS

_COUNTER = re.compile(r"^vllm:(?:gpu_)?prefix_cache_(queries|hits)(?:_total)?\{[^}]*\} ([\d.e+]+)$", re.MULTILINE)
_SOURCES = re.compile(r"<source 1>.*</source \d+>", re.DOTALL)


def as_is(text: str) -> str:
    return text


def passages_last(text: str) -> str:
    """The same words; what follows the passages comes before them."""
    found = _SOURCES.search(text)
    return f"{text[: found.start()]}{text[found.end() :].strip()}\n\n{found.group()}" if found else text


ORDERS: dict[str, Callable[[str], str]] = {"as it is": as_is, "passages last": passages_last}


async def requests_of(settings: sleuth.Settings, method: str, questions: Sequence[str]) -> list[dict[str, Any]]:
    async with (
        recorder(settings.model_url) as (url, recorded),
        sleuth.open(settings.model_copy(update={"model_url": url})) as opened,
    ):
        for question in questions:
            await opened.ask(question, method=method)
    return [json.loads(sent.body) for sent in recorded]


async def hits(url: str, requests: Sequence[dict[str, Any]], order: Callable[[str], str]) -> dict[str, float]:
    """Sends requests again, in another order of their parts; prompt tokens, and the share that was cached."""
    salt = uuid4().hex
    async with httpx.AsyncClient(timeout=600) as http:
        before = await _counters(http, url)
        for request in requests:
            messages = [{**each, "content": order(each["content"])} for each in request["messages"]]
            body = {**request, "messages": messages, "max_tokens": 1, "cache_salt": salt}
            (await http.post(f"{url}/chat/completions", json=body)).raise_for_status()
        after = await _counters(http, url)
    asked = after["queries"] - before["queries"]
    return {"tokens": asked, "hits": round((after["hits"] - before["hits"]) / asked, 3)}


async def _counters(http: httpx.AsyncClient, url: str) -> dict[str, float]:
    text = (await http.get(f"{url.removesuffix('/v1')}/metrics")).text
    counters = {name: float(value) for name, value in _COUNTER.findall(text)}
    if len(counters) != 2:
        sys.exit(f"{url} tells nothing about a prefix cache: this needs a vLLM server.")
    return counters


async def main(methods: Sequence[str], limit: int) -> dict[str, Any]:
    lines = (EXAMPLES / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    every = [json.loads(line)["question"] for line in lines]
    questions = every[:: max(1, len(every) // limit)][:limit]
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = sleuth.Settings(home=Path(folder), timeout=600)
        await ingest([EXAMPLES / "corpus"], settings=settings)
        for name in methods:
            requests = await requests_of(settings, name, questions)
            found = {order: await hits(settings.model_url, requests, change) for order, change in ORDERS.items()}
            measured[name] = {"requests": len(requests), **found}
            rates = ", ".join(f"{order} {each['hits']:.1%}" for order, each in found.items())
            print(f"{name}: {len(requests)} requests, {found['as it is']['tokens']:,.0f} tokens; {rates}", flush=True)
    return measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=[name for name in METHODS if name != "auto"])
    parser.add_argument("--limit", type=int, default=6, help="questions for each method")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    result = asyncio.run(main(given.methods, given.limit))
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
