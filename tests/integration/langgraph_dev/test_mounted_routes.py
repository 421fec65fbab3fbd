"""Our routes inside `langgraph dev`: they are all there, and LangGraph's own stay what they are."""

import json
import re
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from dev_server import langgraph_dev
from fastapi import FastAPI
from serve_scene import FILES, upload
from starlette.routing import Route

from sleuth.studio.langgraph_dev.routes import TAKEN, mount_routes
from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

STUDIO = {"Origin": "https://smith.langchain.com"}


def paths_of(app: FastAPI) -> set[str]:
    """Return the paths of an application, with the names of parameters removed."""
    routes = app.routes
    return {shape(route.path) for route in routes if isinstance(route, Route)}


def shape(path: str) -> str:
    return re.sub(r"{[^}]*}", "{}", path).rstrip("/")


def test_mounted_routes_do_not_shadow_langgraph() -> None:
    spec = find_spec("langgraph_api")
    assert spec
    assert spec.origin
    described = Path(spec.origin).parents[1] / "openapi.json"
    theirs = {shape(path) for path in json.loads(described.read_text(encoding="utf-8"))["paths"]}
    ours = paths_of(mount_routes(Settings()))
    assert len(theirs) > 30
    assert not ours & (theirs | {"", "/openapi.json", "/{}"})
    assert paths_of(create_app(Settings())) - ours <= {shape(path) for path in TAKEN}


@pytest.mark.nightly
async def test_mounted_routes_work_next_to_langgraph(tmp_path: Path) -> None:
    own = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": "none"}
    with langgraph_dev(tmp_path, **own) as server:
        async with httpx.AsyncClient(base_url=server.url, timeout=60, trust_env=False) as client:
            await check(client)


async def check(client: httpx.AsyncClient) -> None:
    page = await client.get("/app", follow_redirects=True)
    assert (page.status_code, page.url.path) == (200, "/app/")
    for name in re.findall(r'"\./(assets/[^"]+)"', page.text):
        assert (await client.get(f"/app/{name}")).status_code == 200
    assert (await upload(client))["status"] == "done"
    assert {each["id"] for each in (await client.get("/v1/documents")).json()} == set(FILES)
    assert (await client.get("/v1/runs/none")).json()["error"]["code"] == "unknown_name"
    assert (await client.get("/v1/runs", headers=STUDIO)).status_code == 403, "ours are for this machine alone"
    made = await client.post("/threads", json={}, headers=STUDIO)
    assert made.status_code == 200, "Studio was kept from LangGraph's own"
    assert "detail" in (await client.get("/threads/none")).json(), "LangGraph's errors have taken our form"
