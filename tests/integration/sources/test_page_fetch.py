"""Pages from the network: real connections to local servers, and names that an injected resolver leads anywhere."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from sleuth.tools.errors import DocumentError, UsageError
from sleuth.tools.web_pages.fetch import fetch_page, is_public
from sleuth.tools.web_pages.page import Page

OUTSIDE, INSIDE = "127.0.0.1", "127.0.0.2"
"""Two addresses of this machine: one represents the public internet, one a forbidden target."""


@dataclass
class Server:
    """Answers each path with bytes; keeps what was asked of it."""

    pages: dict[str, bytes]
    port: int = 0
    requests: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.requests.append(request)
        writer.write(self.pages[request.split()[1]])
        try:
            await writer.drain()
            if request.split()[1] == "/slow":
                await asyncio.sleep(5)
            writer.close()
            await writer.wait_closed()
        except ConnectionError:
            pass

    def hosts(self) -> list[str]:
        return [line[6:] for request in self.requests for line in request.split("\r\n") if line.startswith("Host: ")]


def page(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    told = (f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers)
    return "\r\n".join(told).encode() + b"\r\n\r\n" + body


def moved(to: str) -> bytes:
    return page(b"", f"Location: {to}", status="302 Found")


HTML = "Content-Type: text/html; charset=iso-8859-1"


@pytest.fixture
async def outside() -> AsyncIterator[Server]:
    server = Server({"/": page("<p>Café</p>".encode("latin-1"), HTML, "Last-Modified: Mon, 04 Mar 2024 10:49:26 GMT")})
    listening = await asyncio.start_server(server.serve, OUTSIDE, 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


@pytest.fixture
async def inside(outside: Server) -> AsyncIterator[Server]:
    """Another server on the same port: only the address differs."""
    server = Server({"/": page(b"secret"), "/slow": page(b"secret")}, port=outside.port)
    async with await asyncio.start_server(server.serve, INSIDE, outside.port):
        yield server


@dataclass
class Names:
    """A resolver whose answers are given, one after the other; the last one stays."""

    known: dict[str, list[list[str]]]
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, _: int) -> list[str]:
        self.asked.append(host)
        answers = self.known.get(host, [[host]])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def permitted(address: str) -> bool:
    """Allow the one local address that represents the outside; otherwise the real rules apply."""
    return address == OUTSIDE or is_public(address)


async def fetch(url: str, names: Names | None = None, **limits: Any) -> Page:
    known = {
        "a.example": [OUTSIDE],
        "b.example": [OUTSIDE],
        "evil.example": [INSIDE],
        "both.example": [OUTSIDE, INSIDE],
    }
    names = names or Names({host: [addresses] for host, addresses in known.items()})
    return await fetch_page(url, resolver=names, permitted=permitted, **limits)


async def test_a_page_is_fetched_under_its_name(outside: Server) -> None:
    url = f"http://a.example:{outside.port}/"
    found = await fetch(url)
    assert found == Page(html="<p>Café</p>", url=url, last_modified="Mon, 04 Mar 2024 10:49:26 GMT")
    assert outside.hosts() == [f"a.example:{outside.port}"]


async def test_redirects_are_followed_by_name(outside: Server) -> None:
    outside.pages["/old"] = moved(f"http://b.example:{outside.port}/older")
    outside.pages["/older"] = moved("/")
    found = await fetch(f"http://a.example:{outside.port}/old")
    assert found.url == f"http://b.example:{outside.port}/"
    assert [host.split(":")[0] for host in outside.hosts()] == ["a.example", "b.example", "b.example"]


PUBLIC = ("93.184.216.34", "8.8.8.8", "2606:2800:220:1:248:1893:25c8:1946")
OTHER = (
    *("127.0.0.1", "127.8.9.1", "0.0.0.0", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "100.100.100.200", "192.0.0.192", "224.0.0.1", "239.1.2.3", "255.255.255.255", "240.0.0.1"),
    *("168.63.129.16", "198.18.0.1", "203.0.113.5"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:1::", "::127.0.0.1", "fec0::1"),
    *("localhost", "", "1", "127.1"),
)


def test_only_addresses_of_the_open_internet_are_public() -> None:
    assert [address for address in (*PUBLIC, *OTHER) if is_public(address)] == [*PUBLIC]


@pytest.mark.parametrize("host", ["evil.example", "both.example", INSIDE, "[::1]", "[::ffff:127.0.0.2]", "10.0.0.1"])
@pytest.mark.parametrize("way", ["directly", "by a redirect"])
async def test_the_inside_is_not_reached(outside: Server, inside: Server, host: str, way: str) -> None:
    target = f"//{host}:{inside.port}/"
    outside.pages["/away"] = moved(target)
    with pytest.raises(UsageError, match="not on the public internet"):
        await fetch(f"http:{target}" if way == "directly" else f"http://a.example:{outside.port}/away")
    assert inside.requests == []
    assert len(outside.requests) == (way == "by a redirect")


@pytest.mark.parametrize("number", ["2130706433", "0x7f.1", "127.1", "017700000001", "localhost"])
async def test_other_spellings_of_this_machine_are_seen_through(inside: Server, number: str) -> None:
    with pytest.raises((UsageError, DocumentError), match=r"not on the public internet|no address"):
        await fetch_page(f"http://{number}:{inside.port}/")
    assert inside.requests == []


async def test_a_name_that_changes_its_meaning_is_resolved_once(outside: Server, inside: Server) -> None:
    names = Names({"rebind.example": [[OUTSIDE], [INSIDE]]})
    assert "Café" in (await fetch(f"http://rebind.example:{outside.port}/", names)).html
    assert names.asked == ["rebind.example"]
    outside.pages["/again"] = moved("/")
    with pytest.raises(UsageError, match="not on the public internet"):
        await fetch(f"http://rebind.example:{outside.port}/again", Names({"rebind.example": [[OUTSIDE], [INSIDE]]}))
    assert inside.requests == []


@pytest.mark.parametrize(
    "url",
    [
        *("file:///etc/passwd", "ftp://a.example/", "gopher://a.example/", "http://", "http:///x"),
        *("http://me:secret@a.example/", "http://a.example:{port}/file"),
    ],
)
async def test_other_schemes_and_passwords_are_refused(outside: Server, url: str) -> None:
    outside.pages["/file"] = moved("file:///etc/passwd")
    with pytest.raises(UsageError, match=r"only http|password"):
        await fetch(url.format(port=outside.port))


async def test_large_page_is_cut_with_a_warning(outside: Server) -> None:
    bomb = gzip.compress(b"<p>word</p>" * 1_000_000)
    outside.pages["/large"] = page(b"<p>word</p>" * 1_000, HTML)
    outside.pages["/bomb"] = page(bomb, HTML, "Content-Encoding: gzip")
    for path in ("/large", "/bomb"):
        found = await fetch(f"http://a.example:{outside.port}{path}", max_bytes=5_000)
        assert len(found.html) == 5_000
        assert found.warnings == ("only the first 5,000 bytes were fetched",)


NO_PAGES = {
    "/gone": (page(b"", status="404 Not Found"), "404"),
    "/pdf": (page(b"%PDF-", "Content-Type: application/pdf"), "application/pdf"),
    "/br": (page(b"x", HTML, "Content-Encoding: br"), "not asked for"),
    "/broken": (b"no http at all\r\n\r\n", "fetched"),
    "/round": (moved("/round"), "redirects more than"),
    "/slow": (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>", "took longer than"),
}


@pytest.mark.parametrize("path", NO_PAGES)
async def test_what_is_no_page_is_refused(outside: Server, path: str) -> None:
    outside.pages[path], reason = NO_PAGES[path]
    with pytest.raises(DocumentError, match=reason):
        await fetch(f"http://a.example:{outside.port}{path}", seconds=0.5 if path == "/slow" else 30)
    assert len(outside.requests) == (6 if path == "/round" else 1)


async def test_a_host_without_an_address(outside: Server) -> None:
    async def unknown(host: str, _: int) -> list[str]:
        raise OSError(f"{host} is not known")

    with pytest.raises(DocumentError, match="has no address"):
        await fetch_page("http://nowhere.example/", resolver=unknown)
