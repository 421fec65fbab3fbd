"""Mixed work for `sleuth serve` with a model and an embedder that fail: all of it is done, and nothing leaks.

Six clients ask, follow events to the end, upload and delete documents, search, stop, resume, fork, read histories and
remove runs. `SOAK_MINUTES=120` makes a longer hunt of it. Numbers of runs and documents stay about constant.
"""

import asyncio
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

import httpx
import psutil
import pytest

from benchmarks.growth.corpus import passage, questions
from benchmarks.servers import free_port, running, serving, wait_until_up
from tests.support import standin

SLEUTH = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()"]
MINUTES = float(os.environ.get("SOAK_MINUTES", "2"))
METHODS = ("plain-rag", "par-rag", "crp-rag", "ircot", "self-ask", "closed-book")
AT_ONCE, IN_A_ROUND, TRIES = 6, 8, 8
DOCUMENTS, PASSAGES, KEPT = 40, 2_000, 60
"""Documents, each of which comes and goes; the texts that they are given in turn; runs that are kept."""
EMBEDDER_AWAY = "/embeddings"
"""In the message of a 503: the embedder has failed, which passes."""


class Failed(Exception):
    """An operation that must succeed has failed."""


class Client:
    """Six concurrent clients; `ended` are answered runs that no client uses."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self.http = http
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self.ended: list[str] = []
        self._dice = Random(0)
        self._asked = questions(PASSAGES, 0, 500)
        self._actions = {
            self.ask: 40,
            self.upload: 14,
            self.delete: 10,
            self.search: 10,
            self.fork: 10,
            self.interrupt: 6,
            self.look: 6,
            self.remove: 6,
        }

    async def round(self) -> None:
        await asyncio.gather(*(self._some() for _ in range(AT_ONCE)))

    async def _some(self) -> None:
        for _ in range(IN_A_ROUND):
            (action,) = self._dice.choices(list(self._actions), list(self._actions.values()))
            try:
                await action()
                self.done[action.__name__] += 1
            except Failed as error:
                self.failures.append(f"{action.__name__}: {error}")

    async def ask(self) -> None:
        await self._to_the_end(await self._begin())

    async def interrupt(self) -> None:
        """Stop a run, unless it has ended."""
        thread = await self._begin()
        await asyncio.sleep(self._dice.random() / 5)
        await self._call("POST", f"/v1/runs/{thread}/stop", but=(409,))
        await self._to_the_end(thread)

    async def fork(self) -> None:
        """Fork from any checkpoint, one in three into another method."""
        if (thread := self._taken()) is None:
            return
        every = (await self._call("GET", f"/v1/runs/{thread}/history")).json()
        moments = [moment for moment in every if moment["source"] != "input"]  # the first one has no state
        into = self._dice.choice(METHODS) if self._dice.random() < 1 / 3 else None
        asked = {"at": self._dice.choice(moments)["checkpoint"], "method": into}
        made = (await self._call("POST", f"/v1/runs/{thread}/fork", json=asked)).json()
        await self._resume(made["thread"])
        await self._to_the_end(made["thread"])
        if made["thread"] != thread:
            self.ended.append(thread)

    async def look(self) -> None:
        if (thread := self._taken()) is None:
            return
        for part in ("/history", "/export"):
            await self._call("GET", f"/v1/runs/{thread}{part}")
        await self._call("GET", "/v1/runs?limit=50")
        self.ended.append(thread)

    async def remove(self) -> None:
        while len(self.ended) > KEPT and (thread := self._taken()):
            await self._call("DELETE", f"/v1/runs/{thread}")

    async def upload(self) -> None:
        """Upload one to four documents, most of them in place of earlier ones."""
        await self.put(self._dice.sample(range(DOCUMENTS), self._dice.randint(1, 4)))

    async def put(self, names: Sequence[int]) -> None:
        """Upload documents, again until all of them have been ingested."""
        texts = [passage(self._dice.randrange(PASSAGES), 0)["text"] for _ in names]
        files = [("files", (f"note {name}.txt", text.encode())) for name, text in zip(names, texts, strict=True)]
        for _ in range(TRIES):
            taken = (await self._call("POST", "/v1/documents", files=files)).json()
            await self.http.get(f"/v1/ingests/{taken['ingest']}/events")
            view = (await self._call("GET", f"/v1/ingests/{taken['ingest']}")).json()
            if view["status"] == "done" and not view["failed"]:
                return
        raise Failed(f"an upload ended as {view}")

    async def delete(self) -> None:
        """Delete one of the documents, unless another client has."""
        listed = (await self._call("GET", "/v1/documents?limit=1000")).json()
        if len(listed) > DOCUMENTS // 2:
            await self._call("DELETE", f"/v1/documents/{self._dice.choice(listed)['id']}", but=(404,))

    async def search(self) -> None:
        mode = self._dice.choice(("keyword", "dense", "hybrid", "graph"))
        await self._call("GET", "/v1/search", params={"q": self._question(), "mode": mode})

    def _question(self) -> str:
        return self._dice.choice(self._asked)[0]

    def _taken(self) -> str | None:
        """Return an ended run for exclusive use until it is put back."""
        return self.ended.pop(self._dice.randrange(len(self.ended))) if self.ended else None

    async def _begin(self) -> str:
        budget = {"max_calls": self._dice.randint(4, 16)}
        asked = {"question": self._question(), "method": self._dice.choice(METHODS), "budget": budget}
        return str((await self._call("POST", "/v1/runs", json=asked)).json()["thread"])

    async def _resume(self, thread: str) -> None:
        await self._call("POST", f"/v1/runs/{thread}/resume", but=(409,))

    async def _to_the_end(self, thread: str) -> None:
        for _ in range(TRIES):
            ending = await self._follow(thread)
            self.done[f"run ended with {ending}"] += 1
            if ending == "answer":
                self.ended.append(thread)
                return
            await self._resume(thread)
        raise Failed(f"run {thread} came to no answer")

    async def _follow(self, thread: str) -> str:
        """Return the name of its last event, with an error's kind; a server error counts as a failure."""
        name = data = ""
        ids: list[int] = []
        async with self.http.stream("GET", f"/v1/runs/{thread}/events") as stream:
            async for line in stream.aiter_lines():
                field, _, value = line.partition(": ")
                name = value if field == "event" else name
                data = value if field == "data" else data
                ids += [int(value)] if field == "id" else []
        if ids != list(range(1, len(ids) + 1)):
            raise Failed(f"the events of run {thread} came as {ids}")
        kind = f" {json.loads(data)['type']}" if name == "error" else ""
        if kind == " internal_error":
            raise Failed(f"run {thread} ended by a fault of the server")
        return name + kind

    async def _call(self, method: str, path: str, *, but: tuple[int, ...] = (), **more: Any) -> httpx.Response:
        for _ in range(TRIES):
            reply = await self.http.request(method, path, **more)
            if reply.status_code != 503 or EMBEDDER_AWAY not in reply.text:
                break
        if not reply.is_success and reply.status_code not in but:
            raise Failed(f"{method} {path}: {reply.status_code} {reply.text[:300]}")
        return reply


def usage(server: psutil.Process) -> Counter[str]:
    return Counter(mib=server.memory_info().rss >> 20, handles=server.num_fds(), threads=server.num_threads())


async def work(url: str, server: psutil.Process) -> tuple[Client, list[Counter[str]]]:
    samples, until = [], time.monotonic() + 60 * MINUTES
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=300) as http:
        client = Client(http)
        await client.put(range(DOCUMENTS))
        while time.monotonic() < until:
            await client.round()
            samples.append(usage(server))
    return client, samples


@pytest.mark.nightly
@pytest.mark.timeout(60 * (MINUTES + 10))
def test_mixed_work_with_faults_is_done_and_leaks_nothing(tmp_path: Path) -> None:
    model_port, port = free_port(), free_port()
    model_url, url = f"http://127.0.0.1:{model_port}/v1", f"http://127.0.0.1:{port}"
    own = {"HOME": str(tmp_path / "home"), "MODEL_URL": model_url, "EMBEDDER": model_url, "TIMEOUT": "5"}
    env = os.environ | {f"SLEUTH_{name}": value for name, value in own.items()}
    with serving(standin.serve, model_port, 0.05):
        wait_until_up(f"{model_url}/models")
        with running([*SLEUTH, "serve", "--port", str(port)], tmp_path / "serve.log", env=env) as pid:
            wait_until_up(f"{url}/openapi.json")
            client, samples = asyncio.run(work(url, psutil.Process(pid)))
    assert client.failures == []
    assert all(client.done[action.__name__] for action in (client.ask, client.upload, client.search)), client.done
    half, last = len(samples) // 2, len(samples) // 4 or 1
    for name, most in (("handles", 1.2), ("threads", 1.2), ("mib", 1.3)):
        before, after = mean(each[name] for each in samples[half - last : half] or samples), samples[-last:]
        assert mean(each[name] for each in after) <= most * before, (name, [each[name] for each in samples])
