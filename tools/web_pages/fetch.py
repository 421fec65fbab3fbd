"""Pages of files and URLs that a user names; a page is never fetched from an internal address.

A host is resolved once, every address of it is checked, and the connection uses the checked address: later changes of
the name have no effect. Each redirect is checked in the same way.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from pathlib import Path

import httpx2

from sleuth.tools.documents.formats.html_format import decode_html
from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.settings import client_options
from sleuth.tools.web_pages.page import Page
from sleuth.tools.web_pages.reading import read_page_file

Resolver = Callable[[str, int], Awaitable[list[str]]]
"""The addresses of a host."""

# Azure and Oracle serve metadata at addresses that count as public; NAT64, 6to4 and Teredo lead to any of IPv4.
_RANGES = ("168.63.129.16/32", "192.0.0.0/24", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "fec0::/10")
_NEVER = tuple(map(ip_network, _RANGES))


def is_public(address: str) -> bool:
    """Return whether an address is public: not private, loopback, link-local, multicast or reserved."""
    try:
        parsed: IPv4Address | IPv6Address = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped:
        parsed = parsed.ipv4_mapped
    reserved = parsed.is_multicast or parsed.is_reserved or parsed.is_unspecified or parsed.is_link_local
    return parsed.is_global and not reserved and not any(parsed in network for network in _NEVER)


async def resolve(host: str, port: int) -> list[str]:
    """Return the host's addresses from the system's resolver; raise OSError if it has none."""
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


MAX_REDIRECTS = 5
_KINDS = ("", "text/html", "application/xhtml+xml", "text/plain")
_ENCODINGS = ("", "identity", "gzip", "deflate")
_HEADERS = {"User-Agent": "sleuth", "Accept": "text/html,application/xhtml+xml", "Accept-Encoding": "gzip"}
_PORTS = {"http": 80, "https": 443}


async def get_pages(places: Sequence[Page | str]) -> list[Page]:
    """Return the given pages and those at places, in order; only http:// and https:// go to the network."""
    pages: list[Page] = []
    for place in places:
        if isinstance(place, Page):
            pages.append(place)
        elif place.lower().startswith(("http://", "https://")):
            pages.append(await fetch_page(place))
        else:
            pages += await asyncio.to_thread(read_page_file, Path(place))
    return pages


async def fetch_page(
    url: str,
    *,
    seconds: float = 30.0,
    max_bytes: int = 20 << 20,
    resolver: Resolver = resolve,
    permitted: Callable[[str], bool] = is_public,
) -> Page:
    """Return the page at a URL.

    Args:
        url: http or https, without a password in it.
        seconds: the time limit in all.
        max_bytes: content beyond this size is cut off.
        resolver: finds a host's addresses.
        permitted: whether an address may be connected to.

    Raises:
        UsageError: no URL that may be fetched, or an address that is not public.
        DocumentError: the server cannot be reached, does not send a page, or takes too long.
    """
    target = _checked(url)
    # No keep-alive: two hosts may share an address, and a certificate is checked for one of them.
    limits = httpx2.Limits(max_keepalive_connections=0)
    try:
        async with (
            asyncio.timeout(seconds),
            httpx2.AsyncClient(**client_options(), timeout=seconds, limits=limits) as client,
        ):
            for _ in range(MAX_REDIRECTS + 1):
                address = await _address(target, resolver, permitted)
                response, body = await _get(client, target, address, max_bytes)
                if not response.has_redirect_location:
                    break
                target = _checked(str(target.join(response.headers["Location"])))
            else:
                raise DocumentError(f"{target} redirects more than {MAX_REDIRECTS} times.")
    except TimeoutError as error:
        raise DocumentError(f"{url} took longer than {seconds:g} s. Save the page, and pass the file.") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise DocumentError(f"{url} cannot be fetched: {str(error) or type(error).__name__}.") from error
    try:
        html = decode_html(body[:max_bytes], declared=response.charset_encoding)
    except DocumentError as error:
        raise DocumentError(f"{url} is not a page: it {error}") from error
    warnings = (f"only the first {max_bytes:,} bytes were fetched",) if len(body) > max_bytes else ()
    last_modified = response.headers.get("Last-Modified", "")
    return Page(html=html, url=str(target), last_modified=last_modified, warnings=warnings)


def _checked(url: str) -> httpx2.URL:
    try:
        parsed = httpx2.URL(url.strip())
    except httpx2.InvalidURL as error:
        raise UsageError(f"{url!r} is not a URL: {error}.") from error
    if parsed.scheme not in _PORTS or not parsed.host:
        raise UsageError(f"{url!r} cannot be fetched: only http:// and https:// URLs can.")
    if parsed.userinfo:
        raise UsageError("A URL with a password in it is not fetched: it would be kept with the run.")
    return parsed


async def _address(url: httpx2.URL, resolver: Resolver, permitted: Callable[[str], bool]) -> str:
    try:
        addresses = await resolver(url.host, url.port or _PORTS[url.scheme])
    except (OSError, UnicodeError) as error:
        raise DocumentError(f"{url.host} has no address: {error}. Check the spelling.") from error
    if not addresses or not all(map(permitted, addresses)):
        raise UsageError(
            f"{url.host} leads to {', '.join(addresses) or 'nowhere'}, which is not on the public internet: "
            "pages come from there only. Save the page, and pass the file."
        )
    return addresses[0]


async def _get(client: httpx2.AsyncClient, url: httpx2.URL, address: str, limit: int) -> tuple[httpx2.Response, bytes]:
    """Send one request to an address in the name of a host; return the response, and its body unless it is a redirect.

    The body is complete, or longer than the limit.
    """
    target = url.copy_with(host=f"[{address}]" if ":" in address else address)
    headers = {**_HEADERS, "Host": url.netloc.decode("ascii")}
    extensions = {"sni_hostname": url.raw_host.decode("ascii")}  # also what the certificate must be for
    body = bytearray()
    async with client.stream("GET", target, headers=headers, extensions=extensions) as response:
        if not response.has_redirect_location:
            if not response.is_success:
                raise DocumentError(f"{url} answers {response.status_code} {response.reason_phrase}.")
            kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            if kind not in _KINDS:
                raise DocumentError(f"{url} is not a page but {kind}. `sleuth ingest` reads other files.")
            if response.headers.get("Content-Encoding", "").strip().lower() not in _ENCODINGS:
                raise DocumentError(f"{url} is sent in an encoding that was not asked for.")
            async for part in response.aiter_bytes():
                body += part
                if len(body) > limit:
                    break
    return response, bytes(body)
