"""Middleware of the server: who is served, how large a body may be, and the labels of metrics."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sleuth.studio.server.middleware.auth import WRONG_KEYS_A_MINUTE, Authentication, Keys
from sleuth.studio.server.middleware.limits import JSON_BYTES, BodyLimit, count_values
from sleuth.studio.server.middleware.request_log import RequestLog
from sleuth.studio.server.telemetry.metrics import Telemetry
from sleuth.tools.settings import Settings


async def read_body(scope: Scope, receive: Receive, send: Send) -> None:
    size = len(await Request(scope, receive).body())
    await PlainTextResponse(str(size))(scope, receive, send)


async def send(app: ASGIApp, method: str, path: str, *, address: str = "127.0.0.1", **options: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app=app, client=(address, 50_000), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8100") as client:
        return await client.request(method, path, **options)


async def chunks(size: int) -> AsyncIterator[bytes]:
    for _ in range(0, size, 1 << 16):
        yield bytes(1 << 16)


@pytest.mark.parametrize("kind", ["multipart/form-data; boundary=x", "Multipart/Form-Data"])
async def test_upload_above_the_limit_of_json_is_accepted(kind: str) -> None:
    reply = await send(BodyLimit(read_body), "POST", "/v1/documents", content=bytes(JSON_BYTES + 1))
    assert reply.status_code == 413
    for body, size in ((bytes(JSON_BYTES + 1), JSON_BYTES + 1), (chunks(2 * JSON_BYTES), 2 * JSON_BYTES)):
        reply = await send(BodyLimit(read_body), "POST", "/v1/documents", content=body, headers={"Content-Type": kind})
        assert (reply.status_code, reply.text) == (200, str(size))


@pytest.mark.parametrize("text", ["a, [b], {c}", 'a quote: ", [{', "a backslash: \\", '\\",[', ""])
def test_values_are_counted_and_the_marks_in_texts_are_not(text: str) -> None:
    value = {text: [text, {"a": text, text: 1}, 2, None]}
    assert count_values(json.dumps(value).encode()) == 8


@pytest.mark.parametrize("method", ["BREW", "GET1", "PROPFIND", "X" * 50])
async def test_invented_method_has_no_label_of_its_own(method: str) -> None:
    telemetry = Telemetry()
    for made in (method, f"{method}2"):
        await send(RequestLog(read_body, telemetry=telemetry), made, f"/{made}")
    await send(RequestLog(read_body, telemetry=telemetry), "PATCH", "/x")
    lines = telemetry.metrics(with_owners=False).decode().splitlines()
    counts = {line for line in lines if line.startswith("sleuth_request_seconds_count")}
    assert counts == {
        'sleuth_request_seconds_count{method="(none)",route="(none)",status="200"} 2.0',
        'sleuth_request_seconds_count{method="PATCH",route="(none)",status="200"} 1.0',
    }


OTHER_ORIGINS = ("https://evil.example", "http://127.0.0.1:9999", "http://localhost:8100", "http://[::1", "null")


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("GET", "/v1/methods", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("GET", "/v1/methods", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("HEAD", "/v1/runs", {"Sec-Fetch-Site": "cross-site"}, 403),
        ("GET", "/healthz", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("GET", "/assets/index.js", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
        ("POST", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
        ("GET", "/v1/methods", {"Sec-Fetch-Site": "same-origin"}, 200),
        ("GET", "/v1/methods", {"Sec-Fetch-Site": "none"}, 200),
        ("GET", "/v1/methods", {}, 200),
        *(("GET", path, {"Host": "evil.example"}, 403) for path in ("/healthz", "/", "/v1/runs", "/openapi.json")),
        *(("POST", "/v1/runs", {"Origin": each}, 403) for each in OTHER_ORIGINS),
        *(("DELETE", "/v1/runs/1", {"Sec-Fetch-Site": each}, 403) for each in ("same-site", "cross-site")),
        *(
            ("POST", "/v1/runs", {"Host": host, "Origin": f"http://{host}", "Sec-Fetch-Site": "same-origin"}, 200)
            for host in ("127.0.0.1:8100", "localhost:8100", "[::1]:8100")
        ),
    ],
)
async def test_other_site_may_link_to_the_page_only(
    method: str, path: str, headers: dict[str, str], status: int
) -> None:
    app = Authentication(read_body, keys=Keys(Settings()), settings=Settings(), telemetry=Telemetry())
    assert (await send(app, method, path, headers=headers)).status_code == status
    assert (await send(app, method, path, address="10.0.0.7", headers=headers)).status_code == 403


async def test_other_origin_with_a_key_is_served() -> None:
    settings = Settings(api_keys="anna:secret")
    app = Authentication(read_body, keys=Keys(settings), settings=settings, telemetry=Telemetry())
    headers = {"X-Api-Key": "secret", "Origin": "http://127.0.0.1:9999", "Sec-Fetch-Site": "cross-site"}
    assert (await send(app, "POST", "/v1/documents", headers=headers)).status_code == 200


@pytest.mark.parametrize("keys", [None, "anna:secret"])
@pytest.mark.parametrize("host", ["[::1", "[", "::1]", "127.0.0.1:x", "127.0.0.1:99999", "a@127.0.0.1", "127.0.0.1/x"])
async def test_invalid_host_header_is_a_bad_request(keys: str | None, host: str) -> None:
    settings = Settings(api_keys=keys)
    app = Authentication(read_body, keys=Keys(settings), settings=settings, telemetry=Telemetry())
    reply = await send(app, "GET", "/healthz", headers={"Host": host, "X-Api-Key": "secret"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_wrong_keys_are_counted_once_for_each_address_and_ipv6_network() -> None:
    settings = Settings(api_keys="anna:secret")
    app = Authentication(read_body, keys=Keys(settings), settings=settings, telemetry=Telemetry())

    async def status(address: str, key: str) -> int:
        return (await send(app, "GET", "/v1/runs", address=address, headers={"X-Api-Key": key})).status_code

    for number in range(WRONG_KEYS_A_MINUTE + 1):
        assert await status("10.0.0.1", "an old key") == 401
        assert await status(f"2001:db8::{number:x}", f"guess {number}") == (
            429 if number == WRONG_KEYS_A_MINUTE else 401
        )
    assert [await status(each, "secret") for each in ("10.0.0.1", "2001:db8:0:1::1")] == [200, 200]
    limited = await send(app, "GET", "/v1/runs", address="2001:db8::ffff", headers={"X-Api-Key": "secret"})
    assert (limited.status_code, limited.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert 1 <= int(limited.headers["Retry-After"]) <= 60


@pytest.mark.parametrize(
    ("guessing", "same", "other"),
    [
        ("::ffff:1.2.3.4", "1.2.3.4", "::ffff:1.2.3.5"),
        ("64:ff9b::1.2.3.4", "1.2.3.4", "64:ff9b::1.2.3.5"),
        ("2002:102:304::1", "2002:102:304:9::2", "2002:102:305::1"),  # 6to4
        ("2001:0:4136:e378:8000:63bf:fefd:fcfb", "1.2.3.4", "2001:0:4136:e378:8000:63bf:fefd:fcfa"),  # Teredo
        ("fe80::1%eth0", "fe80::1%eth0", "fe80::2%eth0"),
        ("2001:db8::1%eth0", "2001:db8::2", "2001:db8:0:1::1"),
    ],
)
async def test_wrong_keys_of_an_address_refuse_no_other_client(guessing: str, same: str, other: str) -> None:
    settings = Settings(api_keys="anna:secret")
    app = Authentication(read_body, keys=Keys(settings), settings=settings, telemetry=Telemetry())
    for number in range(WRONG_KEYS_A_MINUTE):
        await send(app, "GET", "/v1/runs", address=guessing, headers={"X-Api-Key": f"guess {number}"})
    replies = [
        await send(app, "GET", "/v1/runs", address=each, headers={"X-Api-Key": "secret"}) for each in (same, other)
    ]
    assert [reply.status_code for reply in replies] == [429, 200]
