"""Access control: with keys each owner sees only their own data, without keys only this machine is served."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi.routing import APIRoute
from postgres_fixture import BOTH_STORES
from serve_scene import ANNA, BEN, KEYS, QUESTION, Oracle, Serve, app_of, begin, client_of, opening, told, upload
from starlette.routing import Route

from sleuth.studio.server.app import create_app
from sleuth.studio.server.main import serve
from sleuth.studio.server.middleware.auth import Keys
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

OPEN = {"/healthz", "/livez", "/readyz", "/", "/embed.js"}


@BOTH_STORES
async def test_key_cannot_see_data_of_another_owner(serving: Serve) -> None:
    async with serving(keys=KEYS) as client:
        await upload(client, headers=ANNA)
        thread = await begin(client, headers=ANNA)
        await told(client, thread, headers=ANNA)
        checkpoint = (await client.get(f"/v1/runs/{thread}/history", headers=ANNA)).json()[0]["checkpoint"]
        passage = (await client.get("/v1/search?q=light&mode=keyword", headers=ANNA)).json()[0]["passage"]
        ingest = (await client.post("/v1/documents", files={"files": ("a.txt", b"a")}, headers=ANNA)).json()["ingest"]
        tried = [
            *(("GET", f"/v1/runs/{thread}{end}", None) for end in ("", "/events", "/history", "/export")),
            ("GET", f"/v1/runs/{thread}/checkpoints/{checkpoint}", None),
            *(("POST", f"/v1/runs/{thread}/{what}", {}) for what in ("stop", "resume")),
            ("POST", f"/v1/runs/{thread}/fork", {"at": checkpoint}),
            ("DELETE", f"/v1/runs/{thread}", None),
            ("GET", "/v1/documents/light.md", None),
            ("GET", "/v1/originals/light.md", None),
            ("DELETE", "/v1/documents/light.md", None),
            ("GET", f"/v1/passages/{passage.replace('#', '%23')}", None),
            ("GET", f"/v1/ingests/{ingest}", None),
            ("GET", f"/v1/ingests/{ingest}/events", None),
            ("POST", f"/v1/ingests/{ingest}/stop", None),
        ]
        for verb, path, body in tried:
            reply = await client.request(verb, path, json=body, headers=BEN)
            assert reply.status_code == 404, (verb, path, reply.text)
            assert "apple" not in reply.text
        assert (await client.get("/v1/runs", headers=BEN)).json() == []
        assert (await client.get("/v1/documents", headers=BEN)).json() == []
        assert (await client.get("/v1/search?q=light", headers=BEN)).status_code == 400
        await upload(client, {"other.txt": "Ben's light is green."}, headers=BEN)
        hits = (await client.get("/v1/search?q=light", headers=BEN)).json()
        assert [hit["document"] for hit in hits] == ["other.txt"]
        assert (await client.get(f"/v1/runs/{thread}", headers=ANNA)).json()["answer"]["text"] == "Edric Gannow"


async def test_thread_name_of_another_owner_looks_unused(serving: Serve) -> None:
    """Of every route that takes a thread: Ben's replies are the same but for the name that he asked for."""
    async with serving(keys=KEYS) as client:
        for headers in (ANNA, BEN):
            await upload(client, headers=headers)
        begun = {"question": QUESTION, "method": "plain-rag", "thread": "trip"}
        first = await client.post("/v1/runs", json=begun, headers=ANNA)
        assert first.json()["thread"] == "anna:trip"
        await told(client, "trip", headers=ANNA)
        for verb, path, body in thread_routes(client):
            replies = []
            for name in ("anna:trip", "nobody"):
                given = {key: name if value == "NAME" else value for key, value in body.items()}
                reply = await client.request(verb, path.replace("NAME", name), json=given, headers=BEN)
                replies.append((reply.status_code, reply.text.replace(name, "NAME")))
            assert replies[0] == replies[1], (verb, path)
            assert replies[0][0] in (400, 404), (verb, path)
        for name in ("trip", "anna:trip"):
            made = await client.post("/v1/runs", json={**begun, "thread": name}, headers=BEN)
            assert (made.status_code, made.json()["thread"]) == (201, f"ben:{name}")
            await told(client, name, headers=BEN)


@pytest.mark.parametrize("into", [None, "closed-book"])
async def test_fork_may_have_the_name_of_another_owners_run(serving: Serve, into: str | None) -> None:
    async with serving(keys=KEYS) as client:
        for headers in (ANNA, BEN):
            await upload(client, headers=headers)
        begun = {"question": QUESTION, "method": "plain-rag"}
        for thread in ("trip", "anna:trip"):
            await client.post("/v1/runs", json={**begun, "thread": thread}, headers=ANNA)
            await told(client, thread, headers=ANNA)
        own = await begin(client, headers=BEN)
        await told(client, own, headers=BEN)
        at = (await client.get(f"/v1/runs/{own}/history", headers=BEN)).json()[1]["checkpoint"]
        for name in ("trip", "anna:trip", "unused"):
            body = {"at": at, "name": name, "method": into}
            made = await client.post(f"/v1/runs/{own}/fork", json=body, headers=BEN)
            assert (made.status_code, made.json().get("thread")) == (201, f"ben:{name}"), made.text
            again = await client.post(f"/v1/runs/{own}/fork", json=body, headers=BEN)
            assert (again.status_code, "was used already" in again.text) == (409, True)
            for path in (f"/v1/runs/{name}", f"/langgraph/threads/{name}"):
                assert (await client.get(path, headers=BEN)).status_code == 200
            assert (await client.delete(f"/v1/runs/{name}", headers=BEN)).status_code == 204


def thread_routes(client: httpx.AsyncClient) -> list[tuple[str, str, dict[str, str]]]:
    """Method, path and body of each route that names a run, with NAME in its place."""
    found = [("POST", "/v1/runs", {"question": QUESTION, "method": "plain-rag", "after": "NAME"})]
    for route in app_of(client).routes:
        if isinstance(route, APIRoute) and "{thread}" in route.path:
            path = route.path.replace("{thread}", "NAME").replace("{checkpoint}", "1")
            found += [(verb, path, {"at": "1"}) for verb in route.methods or ()]
    assert len(found) > 10
    return found


async def test_every_route_requires_a_key(tmp_path: Path, serving: Serve) -> None:
    app = create_app(Settings(home=tmp_path, api_keys=KEYS))
    paths = {route.path for route in app.routes if isinstance(route, Route)} - OPEN
    assert len(paths) > 10
    async with serving(keys=KEYS) as client:
        for path in [*paths, "/v1/models", "/nothing"]:
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic apple-secret"}):
                for verb in ("GET", "POST", "DELETE"):
                    reply = await client.request(verb, path, headers=headers)
                    if not path.startswith("/assets/"):
                        assert reply.status_code == 401, (verb, path)
                        assert reply.json()["error"]["code"] == "invalid_api_key"
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/healthz", headers=ANNA)).json()["model"] == "oracle"
        assert (await client.get("/")).status_code == 200


def test_reachable_address_requires_keys() -> None:
    with pytest.raises(UsageError, match="SLEUTH_API_KEYS"):
        serve(Settings(), host="0.0.0.0", port=1)


@pytest.mark.parametrize("given", ["anna", "anna:", ":secret", "an na:s", "anna:same,ben:same"])
def test_invalid_keys_are_refused_without_printing_them(given: str) -> None:
    with pytest.raises(UsageError) as error:
        Keys(Settings(api_keys=given))
    assert "same" not in str(error.value)
    assert "name:secret" in str(error.value)


@pytest.mark.parametrize(
    "given",
    [
        *("site:s", "@https://a.example", "site@https://a.example", "site:s@a.example", "site:s@https://a.example/"),
        "site:s@https://a.example,site:s@https://b.example",
    ],
)
def test_key_of_a_page_needs_a_name_a_secret_and_an_origin(given: str) -> None:
    with pytest.raises(UsageError, match="name:secret@origin"):
        Keys(Settings(api_keys=KEYS, embed_keys=given))


def test_key_of_a_page_needs_another_key() -> None:
    with pytest.raises(UsageError, match="SLEUTH_API_KEYS"):
        Keys(Settings(embed_keys="site:Publ1c@https://a.example"))


async def test_key_of_a_page_chooses_no_method(tmp_path: Path, oracle: Oracle) -> None:
    site = "https://a.example"
    settings = Settings(home=tmp_path, embedder="none", api_keys=KEYS, embed_keys=f"anna:Publ1c@{site}")
    app = create_app(settings, open_model=opening(oracle))
    here = {"Authorization": "Bearer Publ1c", "Origin": site}
    async with app.router.lifespan_context(app), client_of(app) as client:
        await upload(client, headers=ANNA)
        begun = await client.post("/v1/runs", json={"question": "Hello!"}, headers=here)
        thread = begun.json()["thread"]
        for command in ("/method par-rag", " /METHOD\npar-rag", "/help", "/sources"):
            for chat in ({}, {"thread": thread}):
                reply = await client.post("/v1/runs", json={"question": command, **chat}, headers=here)
                assert (reply.status_code, "no commands" in reply.text) == (400, True), reply.text
        assert len((await client.get("/v1/runs", headers=ANNA)).json()) == 0
        options = (await client.get(f"/v1/runs/{thread}", headers=here)).json()["thread"]["options"]
        assert options["values"]["method"] == "auto"


async def test_reading_never_calls_the_model(client: httpx.AsyncClient, oracle: Oracle) -> None:
    await upload(client)
    app = app_of(client)
    paths = {route.path for route in app.routes if isinstance(route, APIRoute) and "GET" in route.methods}
    for path in sorted(path for path in paths if "{" not in path):
        await client.get(path, params={"q": "light"})
    assert oracle.requests == []


async def test_large_body_of_any_type_is_refused(client: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"metadata": {"a": "'
        for _ in range(40):
            yield b"a" * (1 << 16)
        yield b'"}}'

    whole = b"".join([chunk async for chunk in chunks()])
    for kind in ("multipart/x", "application/json", "text/plain"):
        for content in (whole, chunks()):
            for path in ("/langgraph/threads", "/v1/runs"):
                reply = await client.post(path, content=content, headers={"Content-Type": kind})
                assert reply.status_code == 413, (path, kind)


async def test_long_queries_of_one_owner_leave_others_served(serving: Serve) -> None:
    async with serving(keys=KEYS) as client:
        for headers in (ANNA, BEN):
            await upload(client, headers=headers)
        queries = [
            {"q": text * (20_000 // len(text)), "mode": "graph"} for text in ("Ada~2 ", "light ", "lamp", "(a) ")
        ]
        long = [asyncio.create_task(client.get("/v1/search", params=each, headers=ANNA)) for each in 2 * queries]
        assert (await client.get("/v1/search?q=light&mode=graph", headers=BEN)).json()
        assert [reply.status_code for reply in await asyncio.gather(*long)] == [200] * 8
