"""Runs the application under uvicorn, and ends it so that nothing is lost."""

import socket

import uvicorn
from fastapi import FastAPI

from sleuth.studio.serve.access import is_loopback
from sleuth.studio.serve.app import create_app, house_of
from sleuth.studio.serve.telemetry import log_as_json, trace_if_asked
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

GRACE = 10
"""Seconds that open connections have to end."""


IDLE = 75
"""Seconds that a connection may wait for its next request: longer than clients keep theirs, who then hang up first."""


class Server(uvicorn.Server):
    """Interrupts runs and ends their streams before it waits for connections: they would not end by themselves."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Called once, after the first signal."""
        app = self.config.app
        assert isinstance(app, FastAPI)
        await house_of(app).close()
        await super().shutdown(sockets)


def serve(settings: Settings, *, host: str, port: int) -> None:
    """Serves until a signal ends it.

    Raises:
        UsageError: without keys, an address that others reach; or keys that cannot be read.
    """
    if settings.api_keys is None and not is_loopback(host):
        raise UsageError(
            f"Others reach {host}: set SLEUTH_API_KEYS=name:secret,… first, or serve this machine alone (127.0.0.1)."
        )
    trace_if_asked()
    app = create_app(settings)
    log_as_json()
    server_of(app, host=host, port=port).run()


def server_of(app: FastAPI, *, host: str, port: int) -> Server:
    """An application as it is served."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=IDLE,
        log_config=None,
        access_log=False,
        lifespan="on",
    )
    return Server(config)
