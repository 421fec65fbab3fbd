"""Authentication: by API key, or by loopback address if no keys are configured."""

import ipaddress
import re
from collections.abc import Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sleuth.studio.server.schemas.errors import respond
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

OPEN = re.compile(r"(/app)?(/|/assets/.*|/favicon\.\w+)|/app|/healthz")
"""Paths that need no key: the page, which then asks for a key, and the health check."""

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""HTTP methods that change nothing."""

HINT = "SLEUTH_API_KEYS takes name:secret pairs separated by commas, such as anna:S3cret,ben:0ther."


def parse_keys(settings: Settings) -> dict[bytes, str]:
    """Return the owners by the digest of their secret.

    Raises:
        UsageError: a pair cannot be parsed; the message contains no secret.
    """
    given = settings.api_keys.get_secret_value() if settings.api_keys else ""
    keys: dict[bytes, str] = {}
    for number, pair in enumerate((each.strip() for each in given.split(",") if each.strip()), start=1):
        name, colon, secret = pair.partition(":")
        if not (colon and secret.strip() and re.fullmatch(r"[\w.@-]{1,100}", name.strip())):
            raise UsageError(f"Pair {number} cannot be read. {HINT}")
        digest = _digest(secret.strip())
        if keys.setdefault(digest, name.strip()) != name.strip():
            raise UsageError(f"Pair {number} has the secret of another name. {HINT}")
    return keys


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


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

    def __init__(self, app: ASGIApp, *, keys: Mapping[bytes, str], owner: str) -> None:
        self._app = app
        self._keys = dict(keys)
        self._owner = owner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        if _host_of(headers.get("host", "")) is None:
            await respond(400, "The Host header is not a host name or address.")(scope, receive, send)
            return
        owner = self._owner_by_key(headers) if self._keys else self._owner_by_address(scope, headers)
        if owner is None and not (self._keys and OPEN.fullmatch(scope["path"])):
            await self._refusal()(scope, receive, send)
            return
        scope.setdefault("state", {})["owner"] = owner
        await self._app(scope, receive, send)

    def _owner_by_key(self, headers: Headers) -> str | None:
        scheme, _, secret = headers.get("authorization", f"Bearer {headers.get('x-api-key', '')}").partition(" ")
        digest = _digest(secret.strip())
        # Compare with all keys, each in constant time, so that the timing reveals nothing about any key.
        found = [owner for key, owner in self._keys.items() if compare_digest(key, digest)]
        return found[0] if found and scheme.lower() == "bearer" else None

    def _owner_by_address(self, scope: Scope, headers: Headers) -> str | None:
        """Return the owner for requests of this machine; None for others and for pages of other origins.

        Browsers block reading responses of other origins, but they do send write requests.
        """
        client, host = scope.get("client"), headers.get("host", "")
        origins = [_authority_of(headers["origin"])] if "origin" in headers else []
        if scope["method"] not in SAFE_METHODS and not (
            all(origin == host.lower() for origin in origins)
            and headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        ):
            return None
        hosts = [*([client[0]] if client else []), *(_host_of(each) or "" for each in (host, *origins))]
        return self._owner if all(map(is_loopback, hosts)) else None

    def _refusal(self) -> JSONResponse:
        if self._keys:
            problem = "The API key is missing or unknown. Send it as `Authorization: Bearer SECRET`."
            return respond(401, problem, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        problem = "Without SLEUTH_API_KEYS the server accepts requests only from this machine and from its own page."
        return respond(403, problem, code="loopback_only")


def _owner(request: Request) -> str:
    return str(request.state.owner)


Owner = Annotated[str, Depends(_owner)]
"""The owner of a request; routes use only this owner's data."""
