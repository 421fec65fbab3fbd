"""Request ids, log lines, metrics and spans."""

import logging
import re
import time
from http import HTTPStatus
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sleuth.studio.server.telemetry.logs import log_fields
from sleuth.studio.server.telemetry.metrics import Telemetry

_log = logging.getLogger(__name__)

HEADER = "X-Request-ID"
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNKNOWN = "(none)"
"""Label of paths without a route and of other methods: arbitrary ones would make arbitrary many metrics."""


class RequestLog:
    """Outermost middleware: gives each request an id, a log line, a metric and a span."""

    def __init__(self, app: ASGIApp, *, telemetry: Telemetry) -> None:
        self._app = app
        self._telemetry = telemetry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        header = headers.get(HEADER, "")
        id = header if re.fullmatch(r"[\w.-]{1,100}", header) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = id
        status, began = 499, time.monotonic()  # the client has gone, unless there is a reply

        async def send_observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = id
            await send(message)

        verb = scope["method"] if scope["method"] in METHODS else UNKNOWN
        with self._telemetry.request(f"{verb} {UNKNOWN}", headers) as span:
            try:
                with log_fields(request=id):
                    await self._app(scope, receive, send_observed)
            finally:
                route = getattr(scope.get("route"), "path", UNKNOWN)
                seconds, owner = time.monotonic() - began, scope["state"].get("owner")
                span.update_name(f"{verb} {route}")
                span.set_attributes({"http.route": route, "http.response.status_code": status, "sleuth.request": id})
                span.set_attribute("sleuth.owner", owner or "")
                self._telemetry.count_request(verb, route, status, seconds, owner)
                about = {"request": id, "owner": owner, "method": verb}
                about |= {"route": route, "status": status, "seconds": round(seconds, 3)}
                level = logging.INFO if status < HTTPStatus.INTERNAL_SERVER_ERROR else logging.WARNING
                _log.log(level, "request", extra={"about": about})
