"""OpenAI's chat API: each method is a model, each completion a run that can be inspected afterwards."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs import check_question
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.runs import ChatCompletionBuilder, Event, RunFailed
from sleuth.studio.server.runs.keep_alive import with_keep_alive
from sleuth.studio.server.schemas import openai as forms
from sleuth.studio.server.schemas.errors import respond
from sleuth.studio.server.state import ServerState, ServerStateDep

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
    question = check_question(form.question())
    await server.require_ready(owner)
    rewriting = await server.rewrite_follow_up(owner, question, form.turns())
    thread = await server.start_run(
        owner, rewriting.question, form.model, values=form.sleuth.values, budget=form.sleuth.budget.budget()
    )
    builder = ChatCompletionBuilder(thread=thread, method=form.model, rewriting=rewriting)
    is_active = partial(server.run_worker.is_active, thread)
    events = server.log.follow(thread, 0, is_active=is_active)
    if form.stream:
        usage = bool(form.stream_options and form.stream_options.include_usage)
        cancel = partial(server.run_worker.cancel_nowait, thread)
        chunks = with_keep_alive(builder.stream(events, usage=usage), on_close=cancel)
        return StreamingResponse(chunks, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
    return await _complete(builder, events, request, server)


async def _complete(
    builder: ChatCompletionBuilder, events: AsyncGenerator[Event], request: Request, server: ServerState
) -> object:
    """Return the completion, unless the client closes the connection first."""
    async with aclosing(events):
        completion = asyncio.create_task(builder.complete(events))
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
