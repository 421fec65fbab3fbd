"""Run the application under uvicorn and shut it down without losing runs."""

import asyncio
import ctypes
import gc
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import uvicorn
from fastapi import FastAPI

from sleuth.graphs.core.tracing import backend
from sleuth.studio.server.app import create_app
from sleuth.studio.server.state import server_state_of
from sleuth.studio.server.telemetry.logs import LogFormat, configure_logging
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings, Tracing, is_loopback

SHUTDOWN_TIMEOUT = 10
"""Seconds that open connections have to end."""

KEEP_ALIVE = 75
"""Seconds that a connection may be idle: longer than clients keep theirs, so that the client closes it first."""

MAX_HEAD_BYTES = 1 << 16
"""Maximum bytes of a request before its body. Of uvicorn's parsers only h11 has such a limit."""


class Server(uvicorn.Server):
    """Server that runs the lifespan of the application itself, so that its errors reach the caller of `serve`.

    On shutdown it interrupts runs and ends their streams before it waits for connections, which would not end
    otherwise.
    """

    def __init__(
        self, app: FastAPI, config: uvicorn.Config, *, on_ready: Callable[[], None], tracing: Tracing = "off"
    ) -> None:
        super().__init__(config)
        self._tracing = tracing
        self._app = app
        self._on_ready = on_ready
        self._open = AsyncExitStack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen; called once by uvicorn."""
        await self._open.enter_async_context(self._app.router.lifespan_context(self._app))
        try:
            await super().startup(sockets)
        except BaseException:
            await self._open.aclose()
            raise
        gc.freeze()  # what is loaded by now stays; a full collection of it during a search takes longer than the search
        _return_freed_memory()
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Refuse connections, interrupt runs, then stop the application; called once by uvicorn.

        A proxy sends the refused requests to another server.
        """
        for listening in sockets or []:
            listening.close()
        for server in self.servers:
            server.close()
        await server_state_of(self._app).close()
        await super().shutdown(sockets)
        await self._open.aclose()
        if self._tracing == "otel":
            await asyncio.to_thread(backend(self._tracing).export_now)


def serve(
    settings: Settings,
    *,
    host: str,
    port: int,
    log_format: LogFormat = "json",
    verbose: bool = False,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Serve until a signal stops the process.

    Raises:
        UsageError: `host` is reachable from other machines and there are no API keys, the keys cannot be parsed, or
            the address is in use.
        SleuthError: SLEUTH_HOME or a database cannot be used, or SLEUTH_TRACING needs an extra.
    """
    if not (settings.has_keys or is_loopback(host)):
        raise UsageError(
            f"{host} is reachable from other machines. Set SLEUTH_API_KEYS=name:secret,… or bind to 127.0.0.1."
        )
    sockets = _listen(host, port)
    app = create_app(settings)
    configure_logging(log_format, verbose=verbose)
    server_of(app, host=host, port=port, on_ready=on_ready, tracing=settings.tracing).run(sockets)


def server_of(
    app: FastAPI, *, host: str, port: int, on_ready: Callable[[], None] = lambda: None, tracing: Tracing = "off"
) -> Server:
    """Return the server of an application, configured as `sleuth serve` runs it."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        timeout_graceful_shutdown=SHUTDOWN_TIMEOUT,
        timeout_keep_alive=KEEP_ALIVE,
        log_config=None,
        access_log=False,
        lifespan="off",
    )
    return Server(app, config, on_ready=on_ready, tracing=tracing)


def _return_freed_memory() -> None:
    """Let glibc return freed blocks from 256 kB on to the system; it would keep ever larger ones, up to 32 MB."""
    if mallopt := getattr(ctypes.pythonapi, "mallopt", None):
        mallopt(-1, 1 << 18)  # M_TRIM_THRESHOLD
        mallopt(-3, 1 << 18)  # M_MMAP_THRESHOLD


def _listen(host: str, port: int) -> list[socket.socket]:
    """Return listening sockets, created before anything else is opened: early clients wait instead of failing."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return [socket.create_server(address, family=family) for family, _, _, _, address in addresses]
    except OSError as error:
        raise UsageError(
            f"Port {port} at {host} cannot be used: {error.strerror}. Choose another one with --port or --host. "
            "If a sleuth server is running there already, use that one."
        ) from None
