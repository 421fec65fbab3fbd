"""Which addresses of the network a page may come from: public ones, and no other."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host."""

# Metadata is answered at addresses that count as public (Azure, Oracle); NAT64, 6to4 and Teredo lead to any of IPv4.
_NEVER = tuple(
    ip_network(network)
    for network in (
        *("168.63.129.16/32", "192.0.0.0/24"),
        *("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10"),
    )
)


def is_public(address: str) -> bool:
    """Whether an address is one of the open internet: not private, loopback, link-local, multicast or reserved."""
    try:
        found: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, IPv6Address) and found.ipv4_mapped:
        found = found.ipv4_mapped
    reserved = found.is_multicast or found.is_reserved or found.is_unspecified or found.is_link_local
    return found.is_global and not reserved and not any(found in network for network in _NEVER)


async def resolve(host: str, port: int) -> list[str]:
    """The host's addresses as the system knows them; raises OSError where it has none."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
