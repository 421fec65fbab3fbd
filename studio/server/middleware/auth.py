"""Authentication: by API key, or by loopback address if no keys are configured; and limits on requests and keys."""

import ipaddress
import logging
import re
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sleuth.studio.server.middleware.limits import MinuteLimit, respond_later
from sleuth.studio.server.schemas.errors import respond
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings, is_loopback

_log = logging.getLogger(__name__)

PAGE = re.compile(r"/|/assets/.*|/favicon\.\w+")
"""Paths of the page, to which pages of other sites may link."""

OPEN = re.compile(rf"{PAGE.pattern}|/embed\.js|/healthz|/livez|/readyz")
"""Paths that need no key: the page, which then asks for a key, the chat of other pages, and the health checks."""

EMBEDDED_CHAT = re.compile(r"([\w.@-]+:)?embed-[0-9a-f]{32}")
"""Chats of keys for `embed.js`; nobody can guess the name of one."""

EMBEDDED = re.compile(rf"POST /v1/runs|GET /v1/runs/{EMBEDDED_CHAT.pattern}(/events)?")
"""Requests that such a key may send."""

SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
"""HTTP methods that change nothing."""

_SEPARATORS = re.compile(r"[,\r\n]")
HINT = "SLEUTH_API_KEYS takes name:secret pairs separated by commas or line ends, such as anna:S3cret,ben:0ther."
EMBED_HINT = "SLEUTH_EMBED_KEYS takes name:secret@origin, separated by commas, such as site:Publ1c@https://example.org."
FILE_HINT = "SLEUTH_API_KEYS_FILE has one name:secret pair on each line; lines that begin with # are ignored."

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
"""Network whose addresses end with an IPv4 address."""

WRONG_KEYS_A_MINUTE = 20
"""Different wrong keys that one address may send in a minute."""


class Key(NamedTuple):
    """The owner of a key, and the origin of the pages of one for `embed.js`."""

    owner: str
    origin: str = ""


class Keys:
    """The keys by the digest of their secret. One owner may have several keys, so that a key can be replaced."""

    def __init__(self, settings: Settings) -> None:
        """Read the setting and the file.

        Raises:
            UsageError: a pair cannot be parsed, or the file cannot be read; the message contains no secret.
        """
        pairs = settings.api_keys.get_secret_value() if settings.api_keys else ""
        self._fixed = parse_keys(_SEPARATORS.split(pairs), HINT) | _parse_embed_keys(settings)
        self._file = settings.api_keys_file
        self._version = _version(self._file)
        self._keys = self._read() if settings.has_keys else {}

    def __bool__(self) -> bool:
        return bool(self._keys)

    @property
    def origins(self) -> list[str]:
        """The origins of pages with `embed.js`."""
        return [key.origin for key in self._fixed.values() if key.origin]

    def find(self, secret: str) -> Key | None:
        """Return the key with a secret; None for an unknown one."""
        self._refresh()
        digest = digest_of(secret)
        # Compare with all keys, each in constant time, so that the timing reveals nothing about any key.
        matches = [key for stored, key in self._keys.items() if compare_digest(stored, digest)]
        return matches[0] if matches else None

    def _refresh(self) -> None:
        """Read the file again if it has changed; keep the present keys if it cannot be used."""
        version = _version(self._file)
        if version == self._version:
            return
        self._version = version
        try:
            self._keys = self._read()
        except UsageError as error:
            _log.error("the keys of before stay valid: %s", error)
        else:
            _log.info("API keys were read again", extra={"about": {"keys": len(self._keys)}})

    def _read(self) -> dict[bytes, Key]:
        """Return all keys; raise UsageError if there are none, or the file cannot be used."""
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines() if self._file else []
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"SLEUTH_API_KEYS_FILE cannot be read: {error}.") from error
        keys = parse_keys([line for line in lines if not line.lstrip().startswith("#")], FILE_HINT) | self._fixed
        if not keys:
            raise UsageError(f"There is no API key. {FILE_HINT if self._file else HINT}")
        return keys


def parse_keys(pairs: list[str], hint: str = HINT) -> dict[bytes, Key]:
    """Return the keys by the digest of their secret.

    Raises:
        UsageError: a pair cannot be parsed; the message contains no secret.
    """
    keys: dict[bytes, Key] = {}
    for number, pair in enumerate(filter(None, map(str.strip, pairs)), start=1):
        name, colon, secret = pair.partition(":")
        if not (colon and secret.strip() and re.fullmatch(r"[\w.@-]{1,100}", name.strip())):
            raise UsageError(f"Pair {number} cannot be read. {hint}")
        key = Key(name.strip())
        if keys.setdefault(digest_of(secret.strip()), key) != key:
            raise UsageError(f"Pair {number} has the secret of another name. {hint}")
    return keys


def _parse_embed_keys(settings: Settings) -> dict[bytes, Key]:
    """Return the keys for `embed.js` by the digest of their secret.

    Raises:
        UsageError: a key cannot be parsed, or there are no other keys; the message contains no secret.
    """
    keys: dict[bytes, Key] = {}
    entries = settings.embed_keys.get_secret_value() if settings.embed_keys else ""
    for entry in filter(None, map(str.strip, _SEPARATORS.split(entries))):
        pair, _, origin = entry.rpartition("@")
        parsed = parse_keys([pair], EMBED_HINT)
        if not (parsed and re.fullmatch(r"https?://[a-z0-9.:\[\]-]+", origin)) or parsed.keys() & keys.keys():
            raise UsageError(f"A key has no origin in lower-case letters, or that of another page. {EMBED_HINT}")
        keys |= {digest: Key(key.owner, origin) for digest, key in parsed.items()}
    if keys and not settings.has_keys:
        raise UsageError("SLEUTH_EMBED_KEYS needs SLEUTH_API_KEYS, with which the documents of a page are uploaded.")
    return keys


def digest_of(secret: str) -> bytes:
    """Return the digest by which a secret is stored and compared."""
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _version(file: Path | None) -> tuple[int, int] | None:
    """Return the modification time and the size of a file; None if it cannot be read."""
    try:
        stat = file.stat() if file else None
    except OSError:
        return None
    return (stat.st_mtime_ns, stat.st_size) if stat else None


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
    """Middleware that rejects unauthenticated requests and sets `scope["state"]["owner"]` for all others.

    It also rejects requests of an owner beyond the limit per minute, and all of an address that sends wrong keys.
    """

    def __init__(self, app: ASGIApp, *, keys: Keys, settings: Settings, telemetry: Telemetry) -> None:
        self._app = app
        self._keys = keys
        self._settings = settings
        self._telemetry = telemetry
        self._wrong = MinuteLimit(WRONG_KEYS_A_MINUTE)
        self._requests = MinuteLimit(settings.requests_a_minute) if settings.requests_a_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        refusal = self._refuse(scope, Headers(scope=scope)) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)

    def _refuse(self, scope: Scope, headers: Headers) -> JSONResponse | None:
        """Return the response to a request that is refused, or set the owner of the request."""
        if _host_of(headers.get("host", "")) is None:
            return respond(400, "The Host header is not a host name or address.")
        address, secret = _network((scope.get("client") or ("",))[0]), _secret_of(headers)
        if self._keys and secret and (wait := self._wrong.wait(address)):
            self._telemetry.refused_keys.labels("limited").inc()
            return respond_later("Too many wrong API keys from this address", wait)
        key = self._key_of(address, secret) if self._keys else self._key_by_address(scope, headers)
        if key is None and not (self._keys and OPEN.fullmatch(scope["path"])):
            return self._unauthenticated()
        owner, origin = key or (None, "")
        is_chat = headers.get("origin") == origin and EMBEDDED.fullmatch(f"{scope['method']} {scope['path']}")
        if origin and not is_chat:
            return respond(403, f"This key can only chat, by `embed.js` on pages of {origin}.", code="embed_only")
        if owner is not None and self._requests:
            if wait := self._requests.wait(owner):
                return respond_later(f"More than {self._settings.requests_a_minute} requests a minute", wait)
            self._requests.add(owner, object())  # every request counts
        scope.setdefault("state", {}).update(owner=owner, is_embedded=bool(origin))
        return None

    def _key_of(self, address: str, secret: str) -> Key | None:
        key = self._keys.find(secret) if secret else None
        if secret and key is None:
            self._wrong.add(address, digest_of(secret))
            self._telemetry.refused_keys.labels("unknown").inc()
        return key

    def _key_by_address(self, scope: Scope, headers: Headers) -> Key | None:
        """Return the owner's key for requests of this machine; None for others and for pages of other origins.

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
        hosts = [*([client[0]] if client else []), *(_host_of(authority) or "" for authority in (host, *origins))]
        return Key(self._settings.owner) if all(map(is_loopback, hosts)) else None

    def _unauthenticated(self) -> JSONResponse:
        if self._keys:
            problem = "The API key is missing or unknown. Send it as `Authorization: Bearer SECRET`."
            return respond(401, problem, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
        problem = "Without SLEUTH_API_KEYS the server accepts requests only from this machine and from its own page."
        return respond(403, problem, code="loopback_only")


def _secret_of(headers: Headers) -> str:
    """Return the key of a request; empty if it has none."""
    scheme, _, secret = headers.get("authorization", f"Bearer {headers.get('x-api-key', '')}").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else ""


def _network(address: str) -> str:
    """Return the key by which the wrong keys of a client are counted.

    It is an IPv4 address, also one inside an IPv6 address (mapped, NAT64, 6to4, Teredo); for other IPv6 addresses the
    /64 network, of which a client may have every address. All machines of a link share the network of link-local ones.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address) or parsed.is_link_local:
        return str(parsed)
    inside = parsed.ipv4_mapped or parsed.sixtofour or (parsed.teredo and parsed.teredo[1])
    if parsed in NAT64:
        inside = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
    return str(inside or ipaddress.IPv6Network((int(parsed), 64), strict=False))


def _owner(request: Request) -> str:
    return str(request.state.owner)


Owner = Annotated[str, Depends(_owner)]
"""The owner of a request; routes use only this owner's data."""


def _is_embedded(request: Request) -> bool:
    return bool(request.state.is_embedded)


IsEmbedded = Annotated[bool, Depends(_is_embedded)]
"""Whether the key of a request is one for `embed.js`."""
