"""Which addresses a command and the processes that it starts try to reach, as the kernel is asked for them.

strace follows every child, native ones too. An attempt that fails is recorded like one that succeeds.
"""

import ipaddress
import re
from collections.abc import Sequence
from pathlib import Path

DNS = 53

_CALLS = "trace=connect,sendto,sendmsg,sendmmsg"
_IPV4 = re.compile(r'sin_port=htons\((\d+)\), sin_addr=inet_addr\("([^"]+)"\)')
_IPV6 = re.compile(r'sin6_port=htons\((\d+)\).*?inet_pton\(AF_INET6, "([^"]+)"')
_SOCKET = re.compile(r'sun_path=@?"([^"]*resolve[^"]*)"')


def recorded(log: Path, command: Sequence[str | Path]) -> list[str]:
    """The command that runs another one and writes its attempts to `log`."""
    options = ["-f", "-qq", "--seccomp-bpf", "-e", _CALLS, "-e", "signal=none", "-o", str(log)]
    return ["strace", *options, *map(str, command)]


def attempts(log: Path) -> set[tuple[str, int]]:
    """Addresses and ports that were to be reached; 0 where a resolver's socket was."""
    text = log.read_text(encoding="utf-8", errors="replace")
    found = {(address, int(port)) for pattern in (_IPV4, _IPV6) for port, address in pattern.findall(text)}
    return found | {(path, 0) for path in _SOCKET.findall(text)}


def outside(found: set[tuple[str, int]]) -> list[str]:
    """Those beyond this machine, and every look-up of a name, as lines."""
    return sorted(f"{address} port {port}" for address, port in found if port == DNS or not _is_loopback(address))


def _is_loopback(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback
