"""The tools, resources and prompts of the Model Context Protocol, over stdio or streamable HTTP.

The steps of a run and their findings are sent as progress. A `SleuthError` becomes a tool error with its message.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from importlib.metadata import version
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.mcpserver.resources import ResourceSecurity
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolResult, GetPromptResult, InputRequiredResult, Tool, ToolAnnotations
from pydantic import BaseModel, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sleuth.graphs.core import context as options
from sleuth.graphs.core.answer import Answer, Citation, Cost, Note, Status, public_notes, total_cost
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Step
from sleuth.graphs.core.method import REPORT, SURVEY
from sleuth.graphs.persistence.run_filter import RunFilter
from sleuth.graphs.persistence.thread import NAME, Outcome, Thread
from sleuth.graphs.registry import METHODS, runnable
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.mcp_backends import Backend, Events
from sleuth.tools.checked_data import check_json
from sleuth.tools.errors import DISTRIBUTION, SleuthError, UnknownName
from sleuth.tools.places import at_words
from sleuth.tools.search import Mode, Query
from sleuth.tools.search.retriever import MAX_QUERY_CHARS
from sleuth.tools.storage.catalogue import Listed
from sleuth.tools.storage.filters import MAX_CHARS
from sleuth.tools.types import hit_to_json

DOCUMENTS = "sleuth://documents/{+id}"
ANY_ID = ResourceSecurity(reject_path_traversal=False, reject_absolute_paths=False)
"""An id is looked up in the catalogue, never opened as a path."""

MAX_TEXT = 50_000
"""Maximum characters of a document in one reply."""

_HINT = "Questions about the user's own documents: `ask` for an answer with citations, `search` for passages."

Calls = Annotated[options.Calls, Field(ge=1)]
Tokens = Annotated[options.Tokens, Field(ge=1)]
Seconds = Annotated[options.Seconds, Field(gt=0)]
Where = Annotated[options.Where, Field(max_length=MAX_CHARS)]
Label = Annotated[options.Label, Field(max_length=200)]

RunName = Annotated[
    str | None, Field(pattern=NAME, description="a name for the run, by which it can be found if this call is cut off")
]
Wait = Annotated[
    float | None, Field(gt=0, description="seconds after which the call returns with the status `running`")
]

BackendOf = Callable[[str | None], Backend]
"""Returns the backend of an owner; the owner is None over stdio."""


class AnswerResult(BaseModel):
    """The answer of a run; every citation is a quote from start:end of its document. A survey has a table.

    With the status `running` it has no answer yet: `resume` with its thread waits for it.
    """

    thread: str
    method: str
    question: str
    status: Status | Literal["running"]
    text: str
    is_weak: Annotated[bool, Field(description="the sources support the answer only weakly")] = False
    citations: list[Citation]
    notes: list[Note]
    cost: Cost
    warnings: list[str]
    table: dict[str, Any] | None


class RunRow(BaseModel):
    """A run of the caller: its state, and the beginning of its answer, or its findings so far."""

    thread: str
    method: str
    question: str
    state: Outcome
    changed_at: str
    answer: str | None
    findings: list[str]


class DocumentResult(BaseModel):
    """A document or a part of it: `text` begins at character `start` of `length` characters."""

    id: str
    title: str
    source: str
    text: str
    start: int
    length: int


_METHODS = "; ".join(f"{method.name}: {method.line}" for method in METHODS.values())
Method = Annotated[str, Field(description=_METHODS, json_schema_extra={"enum": list(METHODS)})]


class Tools:
    """The tools, on the backend of the caller."""

    def __init__(self, backend_of: BackendOf) -> None:
        self._backend_of = backend_of

    async def ask(  # noqa: PLR0917 - called with keyword arguments, as in the tool's schema
        self,
        question: Annotated[str, Field(description="a complete question that can be understood by itself")],
        context: Context[Any, Any],
        method: Method | None = None,
        settings: options.Values | None = None,
        where: Where = "",
        max_calls: Calls = None,
        max_tokens: Tokens = None,
        max_seconds: Seconds = None,
        label: Label = "",
        thread: RunName = None,
        wait: Wait = None,
    ) -> AnswerResult:
        """Answer a question from the documents, in several steps if necessary, with checked citations."""
        budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
        about: dict[str, Any] = {"values": settings or {}, "budget": budget, "where": where, "label": label}
        backend = self._of(context)
        id = await backend.new_id(thread)
        request = RunRequest(question=question, method=method, thread=id, **about)
        return await _answer_of(backend, id, await backend.ask(request), context, wait)

    async def survey(  # noqa: PLR0917 - called with keyword arguments, as in the tool's schema
        self,
        question: Annotated[str, Field(description="a question about all documents, or about those of `where`")],
        context: Context[Any, Any],
        columns: Annotated[
            list[dict[str, str]] | None,
            Field(description="what each document is asked: name, question, and kind (text, number, date, yes-no)"),
        ] = None,
        where: Where = "",
        limit: Annotated[int | None, Field(ge=1, description="ask only the first documents")] = None,
        max_calls: Calls = None,
        max_tokens: Tokens = None,
        max_seconds: Seconds = None,
        label: Label = "",
        thread: RunName = None,
        wait: Wait = None,
    ) -> AnswerResult:
        """Ask every document the same questions, and count the answers: for which, how many, how much in all."""
        values, more = {"columns": columns or [], "limit": limit}, (max_calls, max_tokens, max_seconds, label)
        return await self.ask(question, context, SURVEY, values, where, *more, thread=thread, wait=wait)

    async def report(  # noqa: PLR0917 - called with keyword arguments, as in the tool's schema
        self,
        question: Annotated[str, Field(description="what the report is about")],
        context: Context[Any, Any],
        sections: Annotated[
            list[dict[str, str]] | None,
            Field(description="the outline: heading and question of each section; by default it is planned"),
        ] = None,
        where: Where = "",
        max_calls: Calls = None,
        max_tokens: Tokens = None,
        max_seconds: Seconds = None,
        label: Label = "",
        thread: RunName = None,
        wait: Wait = None,
    ) -> AnswerResult:
        """Write a report of several sections, in which every sentence has its sources."""
        values, more = {"sections": sections or []}, (max_calls, max_tokens, max_seconds, label)
        return await self.ask(question, context, REPORT, values, where, *more, thread=thread, wait=wait)

    async def resume(  # noqa: PLR0917 - called with keyword arguments, as in the tool's schema
        self,
        thread: Annotated[str, Field(description="the `thread` of an interrupted or failed run")],
        context: Context[Any, Any],
        max_calls: Calls = None,
        max_tokens: Tokens = None,
        max_seconds: Seconds = None,
        wait: Wait = None,
    ) -> AnswerResult:
        """Resume a run from its last checkpoint, or wait for a running one; return the answer of a finished one."""
        budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
        backend = self._of(context)
        id = await backend.id_of(thread)
        events = await backend.resume(id, None if budget == Budget() else budget)
        return await _answer_of(backend, id, events, context, wait)

    async def runs(
        self,
        context: Context[Any, Any],
        find: Annotated[
            str, Field(max_length=200, description="only runs whose question or answer has this text")
        ] = "",
        limit: Annotated[int, Field(ge=1, le=100, description="maximum number of runs")] = 20,
    ) -> list[RunRow]:
        """List runs, the latest first, also those whose call was cut off: `resume` continues one by its thread."""
        backend = self._of(context)
        run_filter = RunFilter(find=find, with_subruns=False, with_empty=False)
        threads = await backend.runs.store.threads.list_newest(run_filter, limit)
        return [await _row(backend.runs, thread, backend.name_of(thread.id)) for thread in threads]

    async def search(
        self,
        query: Annotated[str, Field(description=f"keywords or a question, up to {MAX_QUERY_CHARS:,} characters")],
        context: Context[Any, Any],
        mode: Annotated[Mode, Field(description="search mode")] = "hybrid",
        k: Annotated[int, Field(ge=1, le=100, description="number of passages")] = 5,
        where: Where = "",
    ) -> list[dict[str, Any]]:
        """Search the passages of the documents, without a model; the best first.

        Each has passage, document, title, text, score and rank.
        """
        async with self._of(context).collection() as collection:
            hits = await collection.search(Query(text=query, k=k, mode=mode, where=where))
        return [hit_to_json(at_words(hit, query)) for hit in hits]

    async def list_documents(
        self,
        context: Context[Any, Any],
        find: Annotated[str, Field(max_length=200, description="only documents whose title contains this text")] = "",
        where: Where = "",
        after: Annotated[str, Field(max_length=4096, description="list documents after this id")] = "",
        limit: Annotated[int, Field(ge=1, le=1000, description="maximum number of documents")] = 100,
    ) -> list[Listed]:
        """List the documents by id; `after` the last one of a list returns the next ones."""
        async with self._of(context).collection() as collection:
            return await collection.documents(limit=limit, after=after, find=find, where=where)

    async def get_document(
        self,
        id: Annotated[str, Field(description="the `document` of a citation or search result")],
        context: Context[Any, Any],
        start: Annotated[int, Field(ge=0, description="position of the first character")] = 0,
        length: Annotated[int, Field(ge=1, le=MAX_TEXT, description="maximum number of characters")] = MAX_TEXT,
    ) -> DocumentResult:
        """Read a document, or the part of it around a citation."""
        async with self._of(context).collection() as collection:
            document = await collection.document(id)
        return DocumentResult(
            id=document.id,
            title=document.title,
            source=document.source,
            text=document.text[start : start + length],
            start=start,
            length=len(document.text),
        )

    async def read_document(self, id: str, context: Context[Any, Any]) -> str:
        """Return the text of a document, for the resource; raise ResourceError."""
        try:
            return (await self.get_document(id, context)).text
        except SleuthError as error:
            kind = ResourceNotFoundError if isinstance(error, UnknownName) else ResourceError
            raise kind(str(error)) from error

    def _of(self, context: Context[Any, Any]) -> Backend:
        request = context.request_context.request
        return self._backend_of(request.scope["state"]["owner"] if request else None)


async def _answer_of(
    backend: Backend, id: str, events: Events, context: Context[Any, Any], wait: float | None
) -> AnswerResult:
    """Return the answer of a stored run, or its findings after `wait` seconds.

    Raises:
        ToolError: the run failed; the message names its thread.
    """
    name = backend.name_of(id)
    following = asyncio.create_task(_follow(events, name, context))
    try:
        await asyncio.wait([following], timeout=wait)
        return following.result() if following.done() else await _unfinished(backend, id)
    except SleuthError as error:
        raise ToolError(f"{error} To continue, call `resume` with its thread, {name}.") from error
    finally:
        following.cancel()


async def _follow(events: Events, name: str, context: Context[Any, Any]) -> AnswerResult:
    """Report the steps of a run as progress, each with its thread, and return its answer."""
    number = 0
    await context.report_progress(number, None, f"thread {name}: starting")
    async with aclosing(events) as stream:
        async for event in stream:
            if isinstance(event, Answer):
                return AnswerResult.model_validate(replace(event, thread=name), from_attributes=True)
            if isinstance(event, Step):
                number += 1
                await context.report_progress(number, None, f"thread {name}: {_describe(event)}")
    raise ToolError("The run ended without an answer.")


async def _unfinished(backend: Backend, id: str) -> AnswerResult:
    """Return the findings and the cost so far of a run that continues."""
    name, runs = backend.name_of(id), backend.runs
    thread = await runs.store.threads.get(id)
    state = (await runs.state(thread)).values
    return AnswerResult(
        thread=name,
        method=thread.method,
        question=thread.question,
        status="running",
        text=f"The run continues. For its answer, call `resume` with its thread, {name}.",
        citations=[],
        notes=public_notes(state.get("notes", {})),
        cost=total_cost(state.get("calls", {})),
        warnings=state.get("warnings", []),
        table=None,
    )


async def _row(runs: RunService, thread: Thread, name: str) -> RunRow:
    """Return the row of a run; the findings of one without an answer are read from its state."""
    notes = [] if thread.answer else public_notes((await runs.state(thread)).values.get("notes", {}))
    return RunRow(
        thread=name,
        method=thread.method,
        question=thread.question,
        state=thread.outcome,
        changed_at=thread.updated_at,
        answer=thread.answer,
        findings=[f"{note['question']}: {note['finding']}" for note in notes],
    )


def _describe(step: Step) -> str:
    """Return the node and state of a step, and a line for each of its findings."""
    findings = runnable(step.method).summarize_update(step.update) if step.state == "finished" else []
    return "\n".join([f"{step.method}: {step.node} {step.state}", *(f"  {finding}" for finding in findings)])


class _StrictServer(MCPServer):
    """Server that refuses unknown arguments, and whose messages about arguments name no library."""

    async def list_tools(self) -> list[Tool]:
        """Return the tools; their schemas forbid further arguments."""
        tools = await super().list_tools()
        return [
            tool.model_copy(update={"input_schema": {**tool.input_schema, "additionalProperties": False}})
            for tool in tools
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; null is as if the argument were left out. Raise ToolError for wrong arguments."""
        parameters = {tool.name: list(tool.input_schema.get("properties", {})) for tool in await self.list_tools()}
        try:
            check_json(arguments)
            for argument in arguments:
                if name in parameters and argument not in parameters[name]:
                    hint = f"The arguments of {name} are: {', '.join(parameters[name])}."
                    raise UnknownName("argument", argument, parameters[name], hint)
            given = {argument: value for argument, value in arguments.items() if value is not None}
            return await super().call_tool(name, given, context)
        except (SleuthError, ToolError) as error:
            cause = error.__cause__ if isinstance(error, ToolError) else error
            if isinstance(cause, ValidationError):
                faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}." for fault in cause.errors()]
                raise ToolError(f"Error executing tool {name}: {' '.join(faults)}") from error
            if isinstance(cause, SleuthError):
                raise ToolError(f"Error executing tool {name}: {cause}") from error
            raise

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """Return a prompt; raise MCPError for an unknown name or missing arguments."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            raise MCPError(code=INVALID_PARAMS, message=f"{error}.") from error


def answer_with_citations(question: str) -> str:
    """Answer a question from the documents, with quotes."""
    return (
        f"Answer this question from my documents: {question}\nCall the tool `ask` with it. Quote the citations with "
        "the titles of their documents. If the status is `unknown`, answer that the documents do not contain it."
    )


def find_sources(topic: str) -> str:
    """Find the documents about a topic."""
    return (
        f"Which of my documents are about {topic}? Call the tool `search` with several wordings, and list the titles "
        "with one quoted sentence each."
    )


def mcp_server(backend_of: BackendOf) -> MCPServer:
    """Return the server; run it over stdio with `run_stdio_async`."""
    server = _StrictServer("sleuth", version=version(DISTRIBUTION), instructions=_HINT, log_level="WARNING")
    tools = Tools(backend_of)
    reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    runs = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    server.add_tool(tools.ask, annotations=runs)
    server.add_tool(tools.survey, annotations=runs)
    server.add_tool(tools.report, annotations=runs)
    server.add_tool(tools.search, annotations=reads)
    server.add_tool(tools.list_documents, annotations=reads)
    server.add_tool(tools.get_document, annotations=reads)
    server.add_tool(tools.resume, annotations=runs)
    server.add_tool(tools.runs, annotations=reads)
    server.resource(DOCUMENTS, mime_type="text/plain", description="The text of a document.", security=ANY_ID)(
        tools.read_document
    )
    server.prompt()(answer_with_citations)
    server.prompt()(find_sources)
    return server


def mcp_app(backend_of: BackendOf) -> Starlette:
    """Return an ASGI application with streamable HTTP at `/mcp`, without sessions: requests are independent.

    The owner is `scope["state"]["owner"]`, which a middleware must have set after checking host and origin. Another
    application adds its routes, `app.router.routes.extend(mcp.routes)`, and runs its lifespan inside the application's.
    """
    checked_before = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = mcp_server(backend_of).streamable_http_app(stateless_http=True, transport_security=checked_before)
    app.router.routes.insert(0, Route("/mcp", _refuse_stream, methods=["GET", "DELETE"]))
    return app


def _refuse_stream(_request: Request) -> Response:
    """Refuse requests for a stream of events or the end of a session, which need a server with sessions."""
    raise HTTPException(405, "The server has no sessions: send POST requests.", headers={"Allow": "POST"})
