"""A server with its clients in a process of its own, which kills itself before one of its commits."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import httpx
from asgi_server import started
from chat_scene import APPROVED, PLAIN, reply_of
from serve_scene import QUESTION, Oracle, client_of, ended, opening, told
from served_chat import AGAIN
from sqlalchemy import event
from sqlalchemy.engine import Engine

from sleuth.studio.server.app import create_app
from sleuth.studio.server.runs import worker
from sleuth.tools.settings import Settings

THANKS = "Thanks!"
FILES = 4


@dataclass(frozen=True, kw_only=True)
class Visit:
    """What clients do on a server, a method of `Clients`, and the number of the commit before which it dies.

    `thread` is the chat, run or file that they use; no two visits have the same.
    """

    settings: Settings
    kind: str
    thread: str
    die_at: int


@dataclass
class Clients:
    """Clients that tell the parent what the server has accepted.

    A method is a kind of visit: it calls `begin` when the commits count, and `accept` with each request of them.
    """

    visit: Visit
    pipe: Connection
    client: httpx.AsyncClient
    oracle: Oracle
    commits: int = field(default=-1)

    def count(self, connection: Any) -> None:
        """Count a commit that writes; before the one of the visit, end the process."""
        if self.commits >= 0 and connection.get_execution_options().get("sleuth_write"):
            self.commits += 1
            if self.commits == self.visit.die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    def begin(self) -> None:
        """Count the commits from now on."""
        self.commits = 0

    async def accept(self, name: str, path: str, **body: Any) -> httpx.Response:
        """Send a request, and tell the parent its name and status."""
        reply = await self.client.post(path, **body)
        self.pipe.send((name, reply.status_code))
        return reply

    async def ask(self, text: str, **more: Any) -> None:
        """Send a question, or the next message of the chat; its text is its name."""
        about = {"method": "chat", "thread": self.visit.thread, **more}
        await self.accept(text, "/v1/runs", json={"question": text, **about})

    async def ask_held(self) -> None:
        """Begin the chat with a turn that waits for the model, and wait until it does."""
        self.oracle.hold()
        await self.ask(QUESTION, values=PLAIN)
        await self.oracle.asked.wait()

    async def end(self) -> None:
        """Let the model reply, and wait until nothing runs."""
        self.oracle.free.set()
        await told(self.client, self.visit.thread)

    async def run(self) -> None:
        """Start a run."""
        self.begin()
        await self.ask(QUESTION, method="plain-rag")
        await self.end()

    async def message(self) -> None:
        """Send a message to a chat that has answered."""
        await self.ask(QUESTION, values=PLAIN)
        await self.end()
        self.begin()
        await self.ask(AGAIN)
        await self.end()

    async def queue(self) -> None:
        """Send messages to a busy chat."""
        await self.ask_held()
        self.begin()
        for text in (AGAIN, THANKS):
            await self.ask(text)
        await self.end()

    async def reply(self) -> None:
        """Approve a plan, with a second click."""
        await self.ask(QUESTION, values=APPROVED)
        await self.end()
        self.begin()
        await self.ask("approve")
        await self.ask("approve", label="second click")
        await self.end()

    async def stop(self) -> None:
        """Stop a chat with a queued message, and send another one."""
        await self.ask_held()
        await self.ask(AGAIN)
        self.begin()
        await self.accept("stop", f"/v1/runs/{self.visit.thread}/stop")
        await self.ask(THANKS)
        await self.end()

    async def upload(self) -> None:
        """Send files."""
        self.begin()
        for number in range(FILES):
            file = (f"{self.visit.thread}-{number}.txt", f"Dam {number} of {self.visit.thread} is high.".encode())
            sent = await self.accept(f"upload {number}", "/v1/documents", files=[("files", file)])
            await ended(self.client, sent.json()["ingest"])


def visit(about: Visit, pipe: Connection) -> None:
    """Serve, and tell the name and status of each accepted request, and "end" after the last one."""
    worker.LOOK_SECONDS = 0.1
    asyncio.run(_visit(about, pipe))


async def _visit(about: Visit, pipe: Connection) -> None:
    oracle = Oracle(reply_of)
    app = create_app(about.settings, open_model=opening(oracle))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(started(app))
        clients = Clients(about, pipe, await stack.enter_async_context(client_of(app)), oracle)
        event.listen(Engine, "commit", clients.count)
        await getattr(clients, about.kind)()
        pipe.send(("end", 0))
        await asyncio.sleep(3600)  # until it is killed
