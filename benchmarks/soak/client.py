"""Clients of the soak test: each operation must succeed."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import httpx

from benchmarks.growth.corpus import passage, questions

METHODS = ("plain-rag", "par-rag", "crp-rag", "ircot", "self-ask", "closed-book")
AT_ONCE, IN_A_ROUND, TRIES = 6, 8, 8
DOCUMENTS, PASSAGES = 150, 2_000
"""Names of documents, each of which comes and goes; the texts that they are given in turn."""
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
            self.remove: 4,
        }

    async def round(self) -> None:
        await asyncio.gather(*(self._some() for _ in range(AT_ONCE)))

    async def refresh(self) -> None:
        """Take over the list of ended runs, of which another process has pruned some."""
        listed = (await self._call("GET", "/v1/runs?limit=1000")).json()
        self.ended = [row["id"] for row in listed if row["status"] == "done" and not row["part_of"]]

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
        if thread := self._taken():
            await self._call("DELETE", f"/v1/runs/{thread}")

    async def upload(self) -> None:
        """Upload one to four documents, most of them in place of earlier ones."""
        await self.put(self._dice.sample(range(DOCUMENTS), self._dice.randint(1, 4)))

    async def put(self, names: Iterable[int]) -> None:
        """Upload documents, again until all of them have been ingested."""
        texts = {f"note {name}.txt": self._text() for name in names}
        for _ in range(TRIES):
            view = await self._send(texts)
            if view["status"] == "done" and not view["failed"]:
                return
            self.done["upload sent again"] += 1
        raise Failed(f"an upload ended as {view}")

    async def _send(self, texts: Mapping[str, str]) -> dict[str, Any]:
        files = [("files", (name, text.encode())) for name, text in texts.items()]
        taken = (await self._call("POST", "/v1/documents", files=files)).json()
        async with self.http.stream("GET", f"/v1/ingests/{taken['ingest']}/events") as stream:
            async for _ in stream.aiter_lines():
                pass
        view: dict[str, Any] = (await self._call("GET", f"/v1/ingests/{taken['ingest']}")).json()
        return view

    async def delete(self) -> None:
        """Delete one of the documents, unless another client has."""
        listed = (await self._call("GET", "/v1/documents?limit=1000")).json()
        if len(listed) > DOCUMENTS // 2:
            await self._call("DELETE", f"/v1/documents/{self._dice.choice(listed)['id']}", but=(404,))

    async def search(self) -> None:
        mode = self._dice.choice(("keyword", "dense", "hybrid", "graph"))
        await self._call("GET", "/v1/search", params={"q": self._question(), "mode": mode})

    def _text(self) -> str:
        row = passage(self._dice.randrange(PASSAGES), 0)
        return f"{row['title']}\n\n{row['text']}"

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
        async with self.http.stream("GET", f"/v1/runs/{thread}/events") as stream:
            async for line in stream.aiter_lines():
                field, _, value = line.partition(": ")
                name = value if field == "event" else name
                data = value if field == "data" else data
        kind = f" {json.loads(data)['type']}" if name == "error" else ""
        if kind == " internal_error":
            raise Failed(f"run {thread} ended by a fault of the server")
        return name + kind

    async def _call(self, method: str, path: str, *, but: tuple[int, ...] = (), **more: Any) -> httpx.Response:  # noqa: ANN401
        for _ in range(TRIES):
            reply = await self.http.request(method, path, **more)
            if reply.status_code != 503 or EMBEDDER_AWAY not in reply.text:
                break
            self.done["request repeated, without embedder"] += 1
        if not reply.is_success and reply.status_code not in but:
            raise Failed(f"{method} {path}: {reply.status_code} {reply.text[:300]}")
        return reply
