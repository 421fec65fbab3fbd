"""OpenAI's chat API: each method is a model, each completion a run that can be looked at afterwards."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from fastapi import APIRouter, Request, Response
from starlette.responses import StreamingResponse

from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs import check_question
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.runs import Completing, Event, RunFailed
from sleuth.studio.server.schemas import openai as forms
from sleuth.studio.server.schemas.errors import respond
from sleuth.studio.server.state import House, TheHouse

router = APIRouter(prefix="/v1", tags=["chat"])

AWAKE = 15.0
"""Seconds of silence after which a comment keeps proxies awake."""

GONE = 499
"""What nobody gets to see: the client has hung up."""


@router.get("/models")
def models() -> forms.ModelList:
    """The methods."""
    return forms.ModelList(data=[forms.ModelRow(id=name) for name in METHODS])


@router.get("/models/{name}")
def model(name: str) -> Response:
    """One of them."""
    if name not in METHODS:
        return _no_model(name)
    return Response(forms.ModelRow(id=name).model_dump_json(), media_type="application/json")


def _no_model(name: str) -> Response:
    told = f"There is no method {name!r}; there are: {', '.join(METHODS)}."
    return respond(404, told, kind="invalid_request_error", code="model_not_found", param="model")


@router.post(
    "/chat/completions",
    response_model=forms.Completion,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}},
)
async def complete(asked: forms.ChatForm, request: Request, house: TheHouse, owner: Owner) -> object:
    """Answers the last message; a follow-up is first made a question that can be understood alone.

    The run ends when the client hangs up. Its thread is in `metadata.thread`: it can be resumed, shown and forked.
    """
    if asked.model not in METHODS:
        return _no_model(asked.model)
    completing = await _begin(asked, house, owner)
    events = _events(house, completing.thread)
    if asked.stream:
        usage = bool(asked.stream_options and asked.stream_options.include_usage)
        chunks = _awake(completing.stream(events, usage=usage), house, completing.thread)
        return StreamingResponse(chunks, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
    return await _whole(completing, events, request, house)


async def _begin(asked: forms.ChatForm, house: House, owner: str) -> Completing:
    question = check_question(asked.question())
    library = await house.tenants.library(owner)
    await library.require_documents()
    rewriting = await house.understood(owner, question, asked.turns())
    runs = await house.tenants.reading(owner)
    thread = await runs.start(
        rewriting.question,
        asked.model,
        values=asked.sleuth.values,
        profile=house.settings.profile,
        budget=asked.sleuth.budget.budget(),
    )
    await house.jobs.begin(owner, thread, heard=False)
    return Completing(thread=thread, method=asked.model, rewriting=rewriting)


def _events(house: House, thread: str) -> AsyncGenerator[Event]:
    return house.log.follow(thread, 0, active=lambda: house.jobs.is_active(thread))


async def _whole(completing: Completing, events: AsyncGenerator[Event], request: Request, house: House) -> object:
    """The completion, unless the client hangs up before."""
    async with aclosing(events):
        making = asyncio.create_task(completing.whole(events))
        leaving = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait({making, leaving}, return_when=asyncio.FIRST_COMPLETED)
            return making.result() if making.done() else Response(status_code=GONE)
        except RunFailed as failed:
            return respond(failed.status, str(failed), kind=failed.kind)
        finally:
            house.jobs.abandon(completing.thread)
            for task in (making, leaving):
                task.cancel()
            await asyncio.wait({making, leaving})


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _awake(chunks: AsyncIterator[str], house: House, thread: str) -> AsyncIterator[str]:
    """The chunks, with a comment where there is none for long; whoever stops reading them ends the run."""
    coming = asyncio.ensure_future(anext(chunks, None))
    try:
        while True:
            await asyncio.wait({coming}, timeout=AWAKE)
            if not coming.done():
                yield ": still at it\n\n"
            elif (chunk := coming.result()) is None:
                return
            else:
                yield chunk
                coming = asyncio.ensure_future(anext(chunks, None))
    finally:
        coming.cancel()
        house.jobs.abandon(thread)
