"""OpenAI's APIs: each method is a model, each completion or response a run that can be inspected afterwards."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel
from starlette.responses import StreamingResponse

from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs import check_question
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.runs.keep_alive import with_keep_alive
from sleuth.studio.server.runs.openai_completion import ChatCompletionBuilder, RunFailed
from sleuth.studio.server.runs.openai_response import ResponseBuilder
from sleuth.studio.server.schemas import openai as forms
from sleuth.studio.server.schemas import responses
from sleuth.studio.server.schemas.errors import respond
from sleuth.studio.server.state import ServerState, ServerStateDep
from sleuth.tools.errors import UnknownName, UsageError

router = APIRouter(prefix="/v1", tags=["chat"])

CLIENT_CLOSED_REQUEST = 499
"""Status for the log only: the client has closed the connection."""


@router.get("/models")
def models() -> forms.ModelList:
    """Return the methods as models."""
    return forms.ModelList(data=[forms.ModelRow(id=name) for name in METHODS])


@router.get("/models/{name}")
def model(name: str) -> Response:
    """Return one method as a model."""
    if name not in METHODS:
        return _unknown_model(name)
    return Response(forms.ModelRow(id=name).model_dump_json(), media_type="application/json")


def _unknown_model(name: str) -> Response:
    problem = f"Unknown method {name!r}. Available: {', '.join(METHODS)}."
    return respond(404, problem, kind="invalid_request_error", code="model_not_found", param="model")


@router.post(
    "/chat/completions",
    response_model=forms.Completion,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def complete(form: forms.ChatForm, request: Request, server: ServerStateDep, owner: Owner) -> object:
    """Answer the last message; a follow-up is first rewritten into a self-contained question.

    Closing the connection cancels the run. Its thread is in `metadata.thread`: it can be resumed, shown and forked.
    """
    if form.model not in METHODS:
        return _unknown_model(form.model)
    builder = await _start(form, request, server, owner)
    events = _follow(builder, server)
    if form.stream:
        usage = bool(form.stream_options and form.stream_options.include_usage)
        return _stream(builder, builder.stream(events, usage=usage), server)
    return await _complete(builder.complete(events), builder, events, request, server)


@router.post(
    "/responses",
    response_model=responses.Response,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def respond_to(form: responses.ResponseForm, request: Request, server: ServerStateDep, owner: Owner) -> object:
    """Answer a question in the form of OpenAI's Responses API; see the chat completions."""
    if form.model not in METHODS:
        return _unknown_model(form.model)
    builder = await _start(form.to_chat(), request, server, owner)
    events, response = _follow(builder, server), ResponseBuilder(completion=builder)
    if form.stream:
        return _stream(builder, response.stream(events), server)
    return await _complete(response.complete(events), builder, events, request, server)


@router.post("/embeddings")
async def embed(form: forms.EmbeddingForm, server: ServerStateDep, owner: Owner) -> forms.EmbeddingList:
    """Embed texts as the passages of documents are embedded."""
    collection = await server.tenants.collection(owner)
    embedder = collection.embedder
    if embedder is None:
        raise UsageError("The server has no embedder (SLEUTH_EMBEDDER=none).")
    if form.model != embedder.name:
        raise UnknownName("model", form.model, [embedder.name], f"The server embeds with {embedder.name}.")
    async with collection.turn:
        vectors = await asyncio.to_thread(embedder.embed_passages, form.texts())
    is_packed = form.encoding_format == "base64"
    rows = [b64encode(row.astype("<f4").tobytes()).decode() if is_packed else row.tolist() for row in vectors]
    data = [forms.Embedding(index=at, embedding=row) for at, row in enumerate(rows)]
    return forms.EmbeddingList(data=data, model=embedder.name)


async def _start(form: forms.ChatForm, request: Request, server: ServerState, owner: str) -> ChatCompletionBuilder:
    """Start the run of the last message, and return the builder of its completion."""
    form.require_supported()
    question = check_question(form.question())
    await server.require_ready(owner)
    rewriting = await server.rewrite_follow_up(owner, question, form.turns())
    values, budget = form.sleuth.values, form.sleuth.budget.budget()
    thread = await server.start_run(owner, rewriting.question, form.model, values=values, budget=budget)
    page = str(request.base_url)
    return ChatCompletionBuilder(thread=thread, method=form.model, rewriting=rewriting, page=page)


def _follow(builder: ChatCompletionBuilder, server: ServerState) -> AsyncGenerator[Event]:
    return server.log.follow(builder.thread, 0, is_active=partial(server.run_worker.is_active, builder.thread))


def _stream(builder: ChatCompletionBuilder, chunks: AsyncIterator[str], server: ServerState) -> StreamingResponse:
    cancel = partial(server.run_worker.cancel_nowait, builder.thread)
    lines = with_keep_alive(chunks, on_close=cancel)
    return StreamingResponse(lines, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def _complete(
    reply: Coroutine[Any, Any, BaseModel],
    builder: ChatCompletionBuilder,
    events: AsyncGenerator[Event],
    request: Request,
    server: ServerState,
) -> object:
    """Return the reply, unless the client closes the connection first."""
    async with aclosing(events):
        completion = asyncio.create_task(reply)
        disconnect = asyncio.create_task(_wait_for_disconnect(request))
        try:
            await asyncio.wait({completion, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            return completion.result() if completion.done() else Response(status_code=CLIENT_CLOSED_REQUEST)
        except RunFailed as failed:
            return respond(failed.status, str(failed), kind=failed.kind)
        finally:
            server.run_worker.cancel_nowait(builder.thread)
            for task in (completion, disconnect):
                task.cancel()
            await asyncio.wait({completion, disconnect})


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
