"""API keys: those of a setting and of a file that may change while the server runs; and a limit on wrong ones."""

import ipaddress
import logging
import re
import time
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path

from sleuth.studio.server.middleware.limits import MINUTE
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

_log = logging.getLogger(__name__)

HINT = "SLEUTH_API_KEYS takes name:secret pairs separated by commas, such as anna:S3cret,ben:0ther."
FILE_HINT = "SLEUTH_API_KEYS_FILE has one name:secret pair on each line; lines that begin with # are ignored."

WRONG_KEYS_A_MINUTE = 20
"""Different wrong keys that one address may send in a minute."""

_MAX_ADDRESSES = 10_000


class Keys:
    """The owners by the digest of their secret. One owner may have several keys, so that a key can be replaced."""

    def __init__(self, settings: Settings) -> None:
        """Read the setting and the file.

        Raises:
            UsageError: a pair cannot be parsed, or the file cannot be read; the message contains no secret.
        """
        given = settings.api_keys.get_secret_value() if settings.api_keys else ""
        self._fixed = parse_keys(given.split(","), HINT)
        self._file = settings.api_keys_file
        self._version = _version(self._file)
        self._keys = self._fixed | self._from_file()
        if settings.has_keys and not self._keys:
            raise UsageError(f"There is no API key. {FILE_HINT if self._file else HINT}")

    def __bool__(self) -> bool:
        return bool(self._keys)

    def owner_of(self, secret: str) -> str | None:
        """Return the owner of a key; None for an unknown one."""
        self._refresh()
        digest = digest_of(secret)
        # Compare with all keys, each in constant time, so that the timing reveals nothing about any key.
        found = [owner for key, owner in self._keys.items() if compare_digest(key, digest)]
        return found[0] if found else None

    def _refresh(self) -> None:
        """Read the file again if it has changed; keep the present keys if it cannot be used."""
        version = _version(self._file)
        if version == self._version:
            return
        self._version = version
        try:
            keys = self._fixed | self._from_file()
        except UsageError as error:
            _log.error("the keys of before stay valid: %s", error)
            return
        if not keys:
            _log.error("the keys of before stay valid: SLEUTH_API_KEYS_FILE has none")
            return
        self._keys = keys
        _log.info("API keys were read again", extra={"about": {"keys": len(keys)}})

    def _from_file(self) -> dict[bytes, str]:
        if self._file is None:
            return {}
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"SLEUTH_API_KEYS_FILE cannot be read: {error}.") from error
        return parse_keys([line for line in lines if not line.lstrip().startswith("#")], FILE_HINT)


def parse_keys(pairs: list[str], hint: str = HINT) -> dict[bytes, str]:
    """Return the owners by the digest of their secret.

    Raises:
        UsageError: a pair cannot be parsed; the message contains no secret.
    """
    keys: dict[bytes, str] = {}
    for number, pair in enumerate((each.strip() for each in pairs if each.strip()), start=1):
        name, colon, secret = pair.partition(":")
        if not (colon and secret.strip() and re.fullmatch(r"[\w.@-]{1,100}", name.strip())):
            raise UsageError(f"Pair {number} cannot be read. {hint}")
        digest = digest_of(secret.strip())
        if keys.setdefault(digest, name.strip()) != name.strip():
            raise UsageError(f"Pair {number} has the secret of another name. {hint}")
    return keys


def digest_of(secret: str) -> bytes:
    """Return the digest by which a secret is stored and compared."""
    return sha256(secret.encode("utf-8", "surrogateescape")).digest()


def _version(file: Path | None) -> tuple[int, int] | None:
    """Return what changes with the content of a file."""
    try:
        found = file.stat() if file else None
    except OSError:
        return None
    return (found.st_mtime_ns, found.st_size) if found else None


class WrongKeys:
    """Limit of the different wrong keys of an address; the same one, of a misconfigured client, counts once."""

    def __init__(self) -> None:
        self._minute = 0.0
        self._seen: dict[str, set[bytes]] = {}

    def wait(self, address: str) -> float:
        """Return the seconds for which requests of an address are refused; 0 if they are accepted."""
        is_full = len(self._of(address)) >= WRONG_KEYS_A_MINUTE
        return MINUTE - time.monotonic() % MINUTE if is_full else 0.0

    def add(self, address: str, secret: str) -> None:
        """Count a wrong key."""
        self._of(address).add(digest_of(secret))

    def _of(self, address: str) -> set[bytes]:
        """Return the wrong keys of an address in this minute."""
        minute = time.monotonic() // MINUTE
        if minute != self._minute or len(self._seen) > _MAX_ADDRESSES:
            self._minute, self._seen = minute, {}
        return self._seen.setdefault(_network(address), set())


def _network(address: str) -> str:
    """Return an IPv4 address, or the /64 network of an IPv6 address, of which a client may have every one."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network(f"{address}/64", strict=False))
