"""Size limit of request bodies."""

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.studio.server.schemas.errors import respond

JSON_BYTES = 1 << 20
UPLOAD_BYTES = 256 << 20


class BodyLimit:
    """Middleware that rejects large bodies, by their Content-Length or while they are received."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit = UPLOAD_BYTES if headers.get("content-type", "").startswith("multipart/") else JSON_BYTES
        problem = f"The body is larger than {limit >> 20} MiB."
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > limit:
            await respond(413, problem)(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > limit:
                raise HTTPException(413, problem)
            return message

        await self._app(scope, receive_counted, send)
