"""OpenAI's APIs: each method is a model, each completion or response a run that can be inspected afterwards.

The OpenAPI description contains the requests.
"""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json

from sleuth.graphs.chat.question_rewriting import RewrittenQuestion
from sleuth.graphs.chat.small_talk import REPLIES, is_command, small_talk_reply
from sleuth.graphs.core.answer import Verdict, total_cost
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.request import RunRequest, check_question
from sleuth.studio.server.protocols.chat_completions import ChatCompletion
from sleuth.studio.server.protocols.open_webui import reply_to_task
from sleuth.studio.server.protocols.openai import read_answer
from sleuth.studio.server.protocols.responses import OpenAIResponse
from sleuth.studio.server.protocols.streaming import DESCRIPTION, EventStream
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.schemas import openai as forms
from sleuth.studio.server.schemas.checked import CheckedRoute
from sleuth.studio.server.schemas.errors import respond
from sleuth.studio.server.state import Access, AccessDep
from sleuth.tools.errors import UnknownName, UsageError

router = APIRouter(prefix="/v1", tags=["chat"], route_class=CheckedRoute)

CLIENT_CLOSED_REQUEST = 499
"""Status for the log only: the client has closed the connection."""

LOOK_SECONDS = 1.0
"""Seconds between two looks whether the client has closed the connection."""


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


@router.post("/chat/completions", response_model=None, responses=DESCRIPTION)
async def complete(form: forms.ChatForm, request: Request, access: AccessDep) -> dict[str, Any] | Response:
    """Answer the last message; a follow-up is first rewritten into a self-contained question. Small talk is no run,
    and neither is a title, tags or follow-up questions that Open WebUI asks for.

    Closing the connection cancels the run. `metadata` contains its `thread`, with which it can be resumed, shown and
    forked, the `question` and the `status`.
    """
    return await _answer(form, request, access, ChatCompletion)


@router.post("/responses", response_model=None, responses=DESCRIPTION)
async def respond_to(form: forms.ResponseForm, request: Request, access: AccessDep) -> dict[str, Any] | Response:
    """Answer a question in the form of OpenAI's Responses API; see the chat completions."""
    return await _answer(form.to_chat(), request, access, OpenAIResponse)


@router.post("/embeddings")
async def embed(form: forms.EmbeddingForm, access: AccessDep) -> dict[str, Any]:
    """Embed texts as the passages of documents are embedded."""
    collection = await access.server.tenants.collection(access.owner)
    embedder = collection.embedder
    if embedder is None:
        raise UsageError("The server has no embedder (SLEUTH_EMBEDDER=none).")
    if form.model != embedder.name:
        raise UnknownName("model", form.model, [embedder.name], f"The server embeds with {embedder.name}.")
    async with collection.search_slots:
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
    form: forms.ChatForm, request: Request, access: Access, reply_type: type[ChatCompletion | OpenAIResponse]
) -> dict[str, Any] | Response:
    """Start the run of the last message, and return its reply."""
    if form.model not in METHODS:
        return _unknown_model(form.model)
    question = form.question()
    if not (text := reply_to_task(question)):
        question = check_question(question)
        text = REPLIES["introduction"] if is_command(question) else small_talk_reply(question)
    if text:
        thread, events, rewriting = "", _event_of(text), RewrittenQuestion(question=question, calls={}, warnings=[])
    else:
        await access.require_ready()
        rewriting = await access.rewrite_follow_up(question, form.turns(), form.model)
        about: dict[str, Any] = {"values": form.sleuth.values, "budget": form.sleuth.budget.budget()}
        thread = await access.start(RunRequest(question=rewriting.question, method=form.model, **about))
        events = access.follow(thread)
    reply = reply_type(
        thread=thread,
        method=form.model,
        rewriting=rewriting,
        page=str(request.base_url),
        has_marks=form.sleuth.marks,
        has_usage=bool(form.stream_options and form.stream_options.include_usage),
    )
    cancel = partial(access.server.run_worker.cancel_nowait, thread, after=0)
    if form.stream:
        return EventStream.of(reply.stream(events), on_disconnect=cancel)
    return await _unless_closed(reply, events, request, cancel)


async def _unless_closed(
    reply: ChatCompletion | OpenAIResponse, events: AsyncGenerator[Event], request: Request, cancel: Callable[[], None]
) -> dict[str, Any] | Response:
    """Return the whole reply, unless the client closes the connection first."""
    async with aclosing(events):
        reading = asyncio.create_task(read_answer(events))
        try:
            while not reading.done():
                if await request.is_disconnected():
                    return Response(status_code=CLIENT_CLOSED_REQUEST)
                await asyncio.wait({reading}, timeout=LOOK_SECONDS)
            return reply.whole(*reading.result())
        finally:
            cancel()
            reading.cancel()
            await asyncio.wait({reading})


async def _event_of(text: str) -> AsyncGenerator[Event]:
    """Yield the only event of a reply without a run."""
    answer = {**Verdict(status="answered", text=text, citations=[]), "cost": total_cost({})}
    yield Event(thread="", id=0, name="answer", key="", data=to_json(answer).decode())
