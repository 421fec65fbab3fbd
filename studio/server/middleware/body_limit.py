"""Bounds on what a request may send."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.studio.server.schemas.errors import respond

JSON_BYTES = 1 << 20
UPLOAD_BYTES = 256 << 20


class Bounds:
    """Refuses bodies that are too large: by their header, or when they turn out to be."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The request with its body counted."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        most = UPLOAD_BYTES if headers.get("content-type", "").startswith("multipart/") else JSON_BYTES
        told = f"The body is larger than {most >> 20} MiB."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > most:
            await respond(413, told)(scope, receive, send)
            return
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise HTTPException(413, told)
            return message

        await self._app(scope, counted, send)
