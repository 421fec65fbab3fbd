"""OpenAI's APIs: each method is a model, each completion or response a run that can be inspected afterwards.

OpenAI documents the replies; the OpenAPI description contains the requests.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs import check_question
from sleuth.studio.server.access import Access, AccessDep
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.runs.keep_alive import with_keep_alive
from sleuth.studio.server.runs.openai_replies import OpenAIReply, RunFailed, read_answer
from sleuth.studio.server.schemas import openai as forms
from sleuth.studio.server.schemas.errors import respond
from sleuth.tools.errors import UnknownName, UsageError

router = APIRouter(prefix="/v1", tags=["chat"])

CLIENT_CLOSED_REQUEST = 499
"""Status for the log only: the client has closed the connection."""

REPLIES: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


@router.get("/models")
def models() -> dict[str, Any]:
    """Return the methods as models."""
    return {"object": "list", "data": [_model(name) for name in METHODS]}


@router.get("/models/{name}", response_model=None)
def model(name: str) -> dict[str, Any] | Response:
    """Return one method as a model."""
    return _model(name) if name in METHODS else _unknown_model(name)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "sleuth"}


def _unknown_model(name: str) -> Response:
    problem = f"Unknown method {name!r}. Available: {', '.join(METHODS)}."
    return respond(404, problem, kind="invalid_request_error", code="model_not_found", param="model")


@router.post("/chat/completions", response_model=None, responses=REPLIES)
async def complete(form: forms.ChatForm, request: Request, access: AccessDep) -> dict[str, Any] | Response:
    """Answer the last message; a follow-up is first rewritten into a self-contained question.

    Closing the connection cancels the run. `metadata` contains its `thread`, with which it can be resumed, shown and
    forked, the `question` and the `status`.
    """
    usage = bool(form.stream_options and form.stream_options.include_usage)
    streamed = partial(OpenAIReply.completion_chunks, usage=usage)
    return await _answer(form, request, access, whole=OpenAIReply.completion, streamed=streamed)


@router.post("/responses", response_model=None, responses=REPLIES)
async def respond_to(form: forms.ResponseForm, request: Request, access: AccessDep) -> dict[str, Any] | Response:
    """Answer a question in the form of OpenAI's Responses API; see the chat completions."""
    whole, streamed = OpenAIReply.response, OpenAIReply.response_events
    return await _answer(form.to_chat(), request, access, whole=whole, streamed=streamed)


@router.post("/embeddings")
async def embed(form: forms.EmbeddingForm, access: AccessDep) -> dict[str, Any]:
    """Embed texts as the passages of documents are embedded."""
    collection = await access.server.tenants.collection(access.owner)
    embedder = collection.embedder
    if embedder is None:
        raise UsageError("The server has no embedder (SLEUTH_EMBEDDER=none).")
    if form.model != embedder.name:
        raise UnknownName("model", form.model, [embedder.name], f"The server embeds with {embedder.name}.")
    async with collection.turn:
        vectors = await asyncio.to_thread(embedder.embed_passages, form.texts())
    is_packed = form.encoding_format == "base64"
    rows = [b64encode(row.astype("<f4").tobytes()).decode() if is_packed else row.tolist() for row in vectors]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return {
        "object": "list",
        "data": data,
        "model": embedder.name,
        "usage": {"prompt_tokens": 0, "total_tokens": 0},  # they are not counted
    }


async def _answer(
    form: forms.ChatForm,
    request: Request,
    access: Access,
    *,
    whole: Callable[[OpenAIReply, dict[str, Any], str], dict[str, Any]],
    streamed: Callable[[OpenAIReply, AsyncIterator[Event]], AsyncIterator[str]],
) -> dict[str, Any] | Response:
    """Start the run of the last message, and return its reply."""
    if form.model not in METHODS:
        return _unknown_model(form.model)
    question = check_question(form.question())
    await access.require_ready()
    rewriting = await access.rewrite_follow_up(question, form.turns())
    values, budget = form.sleuth.values, form.sleuth.budget.budget()
    thread = await access.start(rewriting.question, form.model, values=values, budget=budget)
    reply = OpenAIReply(thread=thread, method=form.model, rewriting=rewriting, page=str(request.base_url))
    events = access.follow(thread)
    cancel = partial(access.server.run_worker.cancel_nowait, thread)
    if not form.stream:
        return await _unless_closed(partial(whole, reply), events, request, cancel)
    lines = with_keep_alive(streamed(reply, events), on_close=cancel)
    return StreamingResponse(lines, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def _unless_closed(
    whole: Callable[[dict[str, Any], str], dict[str, Any]],
    events: AsyncGenerator[Event],
    request: Request,
    cancel: Callable[[], None],
) -> dict[str, Any] | Response:
    """Return the reply, unless the client closes the connection first."""
    async with aclosing(events):
        answer = asyncio.create_task(read_answer(events))
        disconnect = asyncio.create_task(_wait_for_disconnect(request))
        try:
            await asyncio.wait({answer, disconnect}, return_when=asyncio.FIRST_COMPLETED)
            return whole(*answer.result()) if answer.done() else Response(status_code=CLIENT_CLOSED_REQUEST)
        except RunFailed as failed:
            return respond(failed.status, str(failed), kind=failed.kind)
        finally:
            cancel()
            for task in (answer, disconnect):
                task.cancel()
            await asyncio.wait({answer, disconnect})


async def _wait_for_disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
