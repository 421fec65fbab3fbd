"""An ASGI application in the test's event loop: its lifespan, and a free port."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette


@asynccontextmanager
async def serving(app: Starlette) -> AsyncIterator[str]:
    """Serves as long as the block lasts; gives the URL without a path."""
    web = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", ws="none", lifespan="off"))
    task = asyncio.create_task(web.serve())
    while not web.started:  # noqa: ASYNC110 - uvicorn has no event for it
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{web.servers[0].sockets[0].getsockname()[1]}"
    finally:
        web.should_exit = True
        web.force_exit = True  # a killed client may have left its request behind
        await task


@asynccontextmanager
async def started(app: FastAPI) -> AsyncIterator[None]:
    """Run the lifespan in one task, as it requires: pytest enters and leaves a fixture in two."""
    is_started, is_over = asyncio.Event(), asyncio.Event()

    async def live() -> None:
        async with app.router.lifespan_context(app):
            is_started.set()
            await is_over.wait()

    task = asyncio.create_task(live())
    task.add_done_callback(lambda _: is_started.set())
    await is_started.wait()
    try:
        yield
    finally:
        is_over.set()
        await task
