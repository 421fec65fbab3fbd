"""Authentication: by API key, or by loopback address if no keys are configured."""

import re
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sleuth.studio.server.middleware.keys import Keys, WrongKeys
from sleuth.studio.server.middleware.limits import respond_later
from sleuth.studio.server.schemas.errors import respond
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.tools.settings import is_loopback

PAGE = re.compile(r"/|/assets/.*|/favicon\.\w+")
"""Paths of the page, to which pages of other sites may link."""

OPEN = re.compile(rf"{PAGE.pattern}|/healthz|/livez|/readyz")
"""Paths that need no key: the page, which then asks for a key, and the health checks."""

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""HTTP methods that change nothing."""


def _host_of(authority: str) -> str | None:
    """Return the host of `host:port`, which may be empty; None if it cannot be parsed."""
    try:
        split = urlsplit(f"//{authority}")
        read = split.netloc == authority and "@" not in authority and (split.port or 0) >= 0
        return (split.hostname or "") if read else None
    except ValueError:
        return None


def _authority_of(origin: str) -> str:
    """Return the `host:port` of an Origin header; empty for `null` and invalid values."""
    scheme, _, authority = origin.lower().partition("://")
    return authority if scheme in ("http", "https") else ""


class Authentication:
    """Middleware that rejects unauthenticated requests and sets `scope["state"]["owner"]` for all others."""

    def __init__(self, app: ASGIApp, *, keys: Keys, owner: str, telemetry: Telemetry) -> None:
        self._app = app
        self._keys = keys
        self._owner = owner
        self._telemetry = telemetry
        self._wrong = WrongKeys()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if _host_of(headers.get("host", "")) is None:
            await respond(400, "The Host header is not a host name or address.")(scope, receive, send)
            return
        address, secret = (scope.get("client") or ("",))[0], _secret_of(headers)
        if self._keys and secret and (wait := self._wrong.wait(address)):
            self._telemetry.count_refused_key("limited")
            await respond_later("Too many wrong API keys from this address", wait)(scope, receive, send)
            return
        owner = self._owner_by_key(address, secret) if self._keys else self._owner_by_address(scope, headers)
        if owner is None and not (self._keys and OPEN.fullmatch(scope["path"])):
            await self._refusal()(scope, receive, send)
            return
        scope.setdefault("state", {})["owner"] = owner
        await self._app(scope, receive, send)

    def _owner_by_key(self, address: str, secret: str) -> str | None:
        owner = self._keys.owner_of(secret) if secret else None
        if secret and owner is None:
            self._wrong.add(address, secret)
            self._telemetry.count_refused_key("unknown")
        return owner

    def _owner_by_address(self, scope: Scope, headers: Headers) -> str | None:
        """Return the owner for requests of this machine; None for others and for pages of other origins.

        Browsers block reading responses of other origins, but they do send the requests: images and forms for instance.
        """
        client, host = scope.get("client"), headers.get("host", "")
        origins = [_authority_of(headers["origin"])] if "origin" in headers else []
        site, is_link = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode") == "navigate"
        if scope["method"] in SAFE_METHODS:
            is_allowed = site != "cross-site" or (is_link and PAGE.fullmatch(scope["path"]) is not None)
        else:
            is_allowed = all(origin == host.lower() for origin in origins) and site in ("none", "same-origin")
        if not is_allowed:
            return None
        hosts = [*([client[0]] if client else []), *(_host_of(each) or "" for each in (host, *origins))]
        return self._owner if all(map(is_loopback, hosts)) else None

    def _refusal(self) -> JSONResponse:
        if self._keys:
            problem = "The API key is missing or unknown. Send it as `Authorization: Bearer SECRET`."
            return respond(401, problem, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        problem = "Without SLEUTH_API_KEYS the server accepts requests only from this machine and from its own page."
        return respond(403, problem, code="loopback_only")


def _secret_of(headers: Headers) -> str:
    """Return the key of a request; empty if it has none."""
    scheme, _, secret = headers.get("authorization", f"Bearer {headers.get('x-api-key', '')}").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _owner(request: Request) -> str:
    return str(request.state.owner)


Owner = Annotated[str, Depends(_owner)]
"""The owner of a request; routes use only this owner's data."""
