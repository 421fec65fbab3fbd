"""Who may do what: with keys each owner for themselves, without keys only this machine."""

from pathlib import Path

import httpx
import pytest
from serve_fixture import Serve
from serve_scene import ANNA, BEN, KEYS, begin, client_of, told, upload
from starlette.routing import Route

from sleuth.studio.serve.access import parse_keys
from sleuth.studio.serve.app import create_app
from sleuth.studio.serve.server import serve
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

OPEN = {"/healthz", "/"}


async def test_one_key_cannot_see_another_s(serving: Serve) -> None:
    async with serving(keys=KEYS) as client:
        await upload(client, headers=ANNA)
        thread = await begin(client, headers=ANNA)
        await told(client, thread, headers=ANNA)
        checkpoint = (await client.get(f"/v1/runs/{thread}/history", headers=ANNA)).json()[0]["checkpoint"]
        passage = (await client.get("/v1/search?q=light&mode=keyword", headers=ANNA)).json()[0]["passage"]
        ingest = (await client.post("/v1/documents", files={"files": ("a.txt", b"a")}, headers=ANNA)).json()["ingest"]
        tried = [
            *(
                ("GET", f"/v1/runs/{thread}{end}", None)
                for end in ("", "/events", "/history", "/export", "/conversation")
            ),
            ("GET", f"/v1/runs/{thread}/checkpoints/{checkpoint}", None),
            *(("POST", f"/v1/runs/{thread}/{what}", {}) for what in ("stop", "resume")),
            ("POST", f"/v1/runs/{thread}/fork", {"at": checkpoint}),
            ("DELETE", f"/v1/runs/{thread}", None),
            ("GET", "/v1/documents/light.md", None),
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
        taken = {"question": "q", "method": "plain-rag", "thread": thread}
        assert (await client.post("/v1/runs", json=taken, headers=BEN)).status_code == 400
        assert (await client.get(f"/v1/runs/{thread}", headers=ANNA)).json()["answer"]["text"] == "Edric Gannow"


async def test_no_route_answers_without_a_key(tmp_path: Path, serving: Serve) -> None:
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


@pytest.mark.parametrize(
    ("address", "headers"),
    [
        ("10.0.0.7", {}),
        ("127.0.0.1", {"Host": "evil.example"}),
        ("127.0.0.1", {"Origin": "https://evil.example"}),
        ("127.0.0.1", {"Origin": "null"}),
    ],
)
async def test_without_keys_only_this_machine_is_served(
    tmp_path: Path, serving: Serve, address: str, headers: dict[str, str]
) -> None:
    app = create_app(Settings(home=tmp_path / "home", embedder="none"))
    async with app.router.lifespan_context(app), client_of(app, address=address) as client:
        for path in ("/healthz", "/", "/v1/runs", "/openapi.json"):
            reply = await client.get(path, headers=headers)
            assert (reply.status_code, reply.json()["error"]["code"]) == (403, "loopback_only")


async def test_a_page_of_this_machine_is_served(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/runs", headers={"Origin": "http://localhost:8100"})).status_code == 200


def test_an_address_that_others_reach_needs_keys() -> None:
    with pytest.raises(UsageError, match="SLEUTH_API_KEYS"):
        serve(Settings(), host="0.0.0.0", port=1)


@pytest.mark.parametrize("given", ["anna", "anna:", ":secret", "an na:s", "anna:same,ben:same"])
def test_keys_that_cannot_be_read_are_refused_without_telling_them(given: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_keys(Settings(api_keys=given))
    assert "same" not in str(error.value)
    assert "name:secret" in str(error.value)


def test_several_keys_may_have_one_owner() -> None:
    assert list(parse_keys(Settings(api_keys="anna:one, anna:two")).values()) == ["anna", "anna"]
