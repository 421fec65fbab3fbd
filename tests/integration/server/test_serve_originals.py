"""Originals over HTTP: kept for uploads, deleted with their document."""

from pathlib import Path

import httpx
import pytest
from postgres_fixture import BOTH_STORES
from serve_scene import FILES, Serve, upload

LIGHT = "/v1/documents/light.md/original"


def copies(home: Path) -> list[Path]:
    return [path for path in (home / "originals").rglob("*") if path.is_file()]


@BOTH_STORES
async def test_upload_is_kept_replaced_and_deleted(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await upload(client)
    assert (await client.get("/v1/documents/light.md")).json()["has_original"] is True
    original = await client.get(LIGHT)
    assert (original.status_code, original.text) == (200, FILES["light.md"])
    await upload(client, {"light.md": "It fell in 1950."})
    assert (await client.get(LIGHT)).text == "It fell in 1950."
    assert len(copies(tmp_path / "home")) == len(FILES)
    await client.delete("/v1/documents/light.md")
    missing = await client.get(LIGHT)
    assert (missing.status_code, "There is no document" in missing.json()["error"]["message"]) == (404, True)
    assert len(copies(tmp_path / "home")) == len(FILES) - 1


@pytest.mark.parametrize(
    ("name", "media_type", "disposition"),
    [
        ("notes.md", "text/markdown; charset=utf-8", "inline"),
        ("page.html", "text/html; charset=utf-8", "attachment"),
        ("table.csv", "text/csv; charset=utf-8", "inline"),
    ],
)
async def test_original_has_headers_that_run_nothing(
    client: httpx.AsyncClient, name: str, media_type: str, disposition: str
) -> None:
    await upload(client, {name: "<script>alert(1)</script>,<p>One</p>\nlight,tower\n"})
    headers = (await client.get(f"/v1/documents/{name}/original")).headers
    assert headers["content-type"] == media_type
    assert headers["content-disposition"] == f'{disposition}; filename="{name}"'
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]


async def test_server_keeps_no_uploads_if_turned_off(serving: Serve, tmp_path: Path) -> None:
    async with serving(keep_originals=False) as client:
        await upload(client)
        assert (await client.get("/v1/documents/light.md")).json()["has_original"] is False
        missing = await client.get(LIGHT)
        assert missing.status_code == 404
        assert "There is no original 'light.md'. No copy of its file is kept." in missing.json()["error"]["message"]
    assert copies(tmp_path / "home") == []
