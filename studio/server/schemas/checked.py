"""Requests with values that cannot be stored are refused before any route reads them."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from sleuth.tools.checked_data import TOO_DEEP, check_json
from sleuth.tools.errors import UsageError

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class CheckedRequest(Request):
    """Request whose JSON body is checked; with a key for `embed.js`, only the fields that it may send are read."""

    async def json(self) -> Any:  # noqa: ANN401 - JSON
        """Return the body; raise HTTPException with status 400 if it cannot be stored."""
        try:
            value = await super().json()
            if self.state.is_embedded and isinstance(value, dict):
                value = {name: value[name] for name in ("question", "thread") if name in value}
            check_json(value)
        except (UsageError, RecursionError) as error:
            raise HTTPException(400, TOO_DEEP if isinstance(error, RecursionError) else str(error)) from None
        return value


class CheckedRoute(APIRoute):
    """Route that checks its path, query and JSON body."""

    def get_route_handler(self) -> Handler:
        """Return the handler of requests."""
        handle = super().get_route_handler()

        async def handle_checked(request: Request) -> Response:
            if "\x00" in request.url.path or "%00" in request.url.query:
                raise HTTPException(400, "The address contains the character NUL (%00), which cannot be stored.")
            return await handle(CheckedRequest(request.scope, request.receive))

        return handle_checked
