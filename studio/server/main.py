"""Runs the application under uvicorn, and ends it so that nothing is lost."""

import socket
from collections.abc import Callable
from contextlib import AsyncExitStack

import uvicorn
from fastapi import FastAPI

from sleuth.studio.server.app import create_app, house_of
from sleuth.studio.server.middleware.auth import is_loopback
from sleuth.studio.server.telemetry import log_as_json, trace_if_asked
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

GRACE = 10
"""Seconds that open connections have to end."""


IDLE = 75
"""Seconds that a connection may wait for its next request: longer than clients keep theirs, who then hang up first."""


HEAD_BYTES = 1 << 16
"""Bytes that a request may have before its body. Of uvicorn's parsers only h11 has such a limit."""


class Server(uvicorn.Server):
    """Opens the application itself: what an ASGI server would log as a traceback is raised, for who has started it.

    Interrupts runs and ends their streams before it waits for connections: they would not end by themselves.
    """

    def __init__(self, config: uvicorn.Config, *, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready
        self._open = AsyncExitStack()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Called once; raises whatever the application cannot start for."""
        await self._open.enter_async_context(self._app.router.lifespan_context(self._app))
        try:
            await super().startup(sockets)
        except BaseException:
            await self._open.aclose()
            raise
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called once, after the first signal."""
        await house_of(self._app).close()
        await super().shutdown(sockets)
        await self._open.aclose()

    @property
    def _app(self) -> FastAPI:
        app = self.config.app
        assert isinstance(app, FastAPI)
        return app


def serve(settings: Settings, *, host: str, port: int, on_ready: Callable[[], None] = lambda: None) -> None:
    """Serves until a signal ends it.

    Raises:
        UsageError: without keys, an address that others reach; keys that cannot be read; an address that is taken.
        SleuthError: SLEUTH_HOME or a database cannot be used.
    """
    if settings.api_keys is None and not is_loopback(host):
        raise UsageError(
            f"Others reach {host}: set SLEUTH_API_KEYS=name:secret,… first, or serve this machine alone (127.0.0.1)."
        )
    sockets = _listening(host, port)
    trace_if_asked()
    app = create_app(settings)
    log_as_json()
    server_of(app, host=host, port=port, on_ready=on_ready).run(sockets)


def server_of(app: FastAPI, *, host: str, port: int, on_ready: Callable[[], None] = lambda: None) -> Server:
    """An application as it is served."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http="h11",
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=IDLE,
        log_config=None,
        access_log=False,
        lifespan="off",
    )
    return Server(config, on_ready=on_ready)


def _listening(host: str, port: int) -> list[socket.socket]:
    """The address, taken before anything is opened: who comes too early waits."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return [socket.create_server(address, family=family) for family, _, _, _, address in found]
    except OSError as error:
        raise UsageError(
            f"Port {port} at {host} cannot be used: {error.strerror}. Choose another with --port, or --host; "
            "where a server of yours is there already, just use it."
        ) from None
