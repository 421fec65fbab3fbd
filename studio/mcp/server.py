"""The tools: ask, search, get_document and resume, over stdio or streamable HTTP.

A run tells its steps as progress; what a person can mend is a tool error with the message that says how.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import asdict
from importlib.metadata import version
from typing import Annotated, Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field
from starlette.applications import Starlette

from sleuth.graphs.core import Answer, Budget, Citation, Cost, Note, Status, Step
from sleuth.graphs.registry import METHODS
from sleuth.studio.client import DEFAULT_METHOD
from sleuth.studio.mcp.backend import Asked, Backend, Events
from sleuth.tools.errors import SleuthError
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.search import Mode, Query

BackendOf = Callable[[str | None], Backend]
"""Makes the backend of an owner; of None over stdio, where there is nobody else."""

MOST_TEXT = 50_000
"""Characters of a document that one call gives at most."""

_HINT = "Questions about the user's own documents: `ask` for an answer with citations, `search` for passages."

Calls = Annotated[int | None, Field(ge=1, description="model calls that the run may make")]
Tokens = Annotated[int | None, Field(ge=1, description="tokens that the run may spend")]
Seconds = Annotated[float | None, Field(gt=0, description="seconds that the run may take")]


class Answered(BaseModel):
    """The answer of a run; every citation is a quote that stands at start:end of its document."""

    thread: str
    method: str
    question: str
    status: Status
    text: str
    citations: list[Citation]
    notes: list[Note]
    cost: Cost
    warnings: list[str]


class Found(BaseModel):
    """A passage that a search has found."""

    passage: str
    document: str
    title: str
    text: str
    score: float
    rank: int


class Shown(BaseModel):
    """A document, or a part of it: `text` is what stands from `start` on, of `length` characters in all."""

    id: str
    title: str
    source: str
    text: str
    start: int
    length: int


@contextmanager
def _told() -> Iterator[None]:
    try:
        yield
    except SleuthError as error:
        raise ToolError(str(error)) from error


def _methods() -> str:
    return "; ".join(f"{method.name}: {method.line}" for method in METHODS.values())


Method = Annotated[str, Field(description=_methods(), json_schema_extra={"enum": list(METHODS)})]


class Tools:
    """The four tools, over the backend of whoever calls."""

    def __init__(self, backend_of: BackendOf) -> None:
        self._backend_of = backend_of

    async def ask(  # noqa: PLR0917 - called by name, as the tool's schema says
        self,
        question: Annotated[str, Field(description="a whole question, which needs nothing else to be understood")],
        context: Context[Any, Any],
        method: Method = DEFAULT_METHOD,
        settings: Annotated[dict[str, Any] | None, Field(description="settings of the method by name")] = None,
        max_calls: Calls = None,
        max_tokens: Tokens = None,
        max_seconds: Seconds = None,
    ) -> Answered:
        """Answer a question from the documents, in several steps where it takes them, with checked citations."""
        budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
        asked = Asked(question=question, method=method, values=settings or {}, budget=budget)
        return await _followed(self._of(context).ask(asked), context)

    async def resume(
        self,
        thread: Annotated[str, Field(description="the `thread` of a run that was interrupted or has failed")],
        context: Context[Any, Any],
        max_calls: Calls = None,
        max_tokens: Tokens = None,
        max_seconds: Seconds = None,
    ) -> Answered:
        """Go on with a run from its last checkpoint; of one that is finished, the answer at once."""
        given = (max_calls, max_tokens, max_seconds) != (None, None, None)
        budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds) if given else None
        return await _followed(self._of(context).resume(thread, budget), context)

    async def search(
        self,
        query: Annotated[str, Field(description="words or a question")],
        context: Context[Any, Any],
        mode: Annotated[Mode, Field(description="how to search")] = "hybrid",
        k: Annotated[int, Field(ge=1, le=100, description="how many passages")] = 5,
    ) -> list[Found]:
        """Search the documents' passages, without asking a model; the best first."""
        with _told():
            async with self._of(context).library() as library:
                hits = await library.search(Query(text=query, k=k, mode=mode))
        return [
            Found(
                passage=hit.passage.id,
                document=hit.passage.document_id,
                title=hit.passage.title,
                text=hit.passage.text,
                score=hit.score,
                rank=hit.rank,
            )
            for hit in hits
        ]

    async def get_document(
        self,
        id: Annotated[str, Field(description="the `document` of a citation or of a passage found")],
        context: Context[Any, Any],
        start: Annotated[int, Field(ge=0, description="character to begin with")] = 0,
        length: Annotated[int, Field(ge=1, le=MOST_TEXT, description="characters at most")] = MOST_TEXT,
    ) -> Shown:
        """Read a document, or the part of it around a citation."""
        with _told():
            async with self._of(context).library() as library:
                found = await library.document(id)
        part = found.text[start : start + length]
        return Shown(
            id=found.id, title=found.title, source=found.source, text=part, start=start, length=len(found.text)
        )

    def _of(self, context: Context[Any, Any]) -> Backend:
        request = context.request_context.request
        return self._backend_of(request.scope["state"]["owner"] if request else None)


async def _followed(events: Events, context: Context[Any, Any]) -> Answered:
    """The answer at the end of a run, its steps as progress on the way; a fault names the thread to be resumed."""
    number, thread = 0, ""
    try:
        async with aclosing(events) as stream:
            async for event in stream:
                if isinstance(event, Answer):
                    shown = {name: value for name, value in asdict(event).items() if name in Answered.model_fields}
                    return Answered(**shown)
                if not isinstance(event, Step):
                    continue
                number, thread = number + 1, thread or event.part_of or event.thread
                await context.report_progress(number, None, f"{event.method}: {event.node} {event.state}")
    except SleuthError as error:
        resumable = f" `resume` goes on with its thread, {thread}." if thread else ""
        raise ToolError(f"{error}{resumable}") from error
    raise ToolError("The run ended without an answer.")


def mcp_server(backend_of: BackendOf) -> MCPServer:
    """The server, to be run over stdio with `run_stdio_async`."""
    server = MCPServer("sleuth", version=version(DISTRIBUTION), instructions=_HINT, log_level="WARNING")
    tools = Tools(backend_of)
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    runs = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    server.add_tool(tools.ask, annotations=runs)
    server.add_tool(tools.search, annotations=reads)
    server.add_tool(tools.get_document, annotations=reads)
    server.add_tool(tools.resume, annotations=runs)
    return server


def mcp_app(backend_of: BackendOf, *, path: str = "/mcp") -> Starlette:
    """An ASGI application that speaks streamable HTTP at `path`, without sessions: every request stands alone.

    Who asks is `scope["state"]["owner"]`, which a middleware before it must have set; hosts and origins are its to
    check too. Another application takes over its route, `app.router.routes.extend(mcp.routes)`, and has it `alive`
    during its own lifespan.
    """
    checked_before = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    server = mcp_server(backend_of)
    return server.streamable_http_app(streamable_http_path=path, stateless_http=True, transport_security=checked_before)


@asynccontextmanager
async def alive(app: Starlette) -> AsyncIterator[None]:
    """An application within another one, from its start to its end: in a task of its own, which must be the same."""
    began, over = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            began.set()
            await over.wait()

    task = asyncio.create_task(live())
    task.add_done_callback(lambda _: began.set())
    await began.wait()
    try:
        yield
    finally:
        over.set()
        await task
