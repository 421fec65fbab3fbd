"""Documents and their originals over HTTP: sent, listed, shown, found, replaced, deleted."""

import json
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from postgres_fixture import BOTH_STORES
from serve_scene import FILES, LIGHT, Serve, upload

from sleuth.tools.settings import Settings


@BOTH_STORES
async def test_uploaded_files_are_ingested_listed_and_found(client: httpx.AsyncClient) -> None:
    last = await upload(client)
    assert (last["status"], last["read"], last["total"], last["failed"]) == ("done", 3, 3, [])
    listed = (await client.get("/v1/documents")).json()
    assert {each["id"]: each["source"] for each in listed} == {name: name for name in FILES}
    for find, count in (("pELLOWRIG", 1), ("%", 0), ("", 3)):
        assert len((await client.get("/v1/documents", params={"find": find})).json()) == count, find
    document = (await client.get("/v1/documents/light.md")).json()
    [span] = document["passages"]
    assert LIGHT in document["text"][span["start"] : span["end"]]
    hits = (await client.get("/v1/search", params={"q": "who built the light", "mode": "keyword", "k": 1})).json()
    assert [hit["document"] for hit in hits] == ["light.md"]
    passage = (await client.get(f"/v1/passages/{hits[0]['passage'].replace('#', '%23')}")).json()
    assert passage["document"] == "light.md"
    assert passage["text"] == document["text"][passage["start"] : passage["end"]]


async def test_document_of_any_id_is_shown_and_deleted(client: httpx.AsyncClient) -> None:
    """Also of one that ends like another address."""
    ids = ["a", "a/original", "original", "x/y.md/original", "a/passages", "/a", "a/", "../a", "a//b", "%2F", "?", "#"]
    lines = [{"id": id, "text": f"The text of {id!r}."} for id in [*ids, "two\nlines"]]
    await upload(client, {"c.jsonl": "\n".join(map(json.dumps, lines))})
    assert {each["id"] for each in (await client.get("/v1/documents")).json()} == {*ids, "two lines"}
    await client.delete("/v1/documents/a")
    for id in [*ids[1:], "two lines"]:
        path = f"/v1/documents/{quote(id, safe='')}"
        assert (await client.get(path)).json()["id"] == id
        assert (await client.delete(path)).status_code == 204, id
        assert (await client.get(path)).status_code == 404
    await upload(client, {"original": "One.", "x/y.md/original": "Two."})
    originals = {each["source"]: each["id"] for each in (await client.get("/v1/documents")).json()}
    for source, text in (("original", "One."), ("x/y.md/original", "Two.")):
        assert (await client.get(f"/v1/originals/{quote(originals[source], safe='')}")).text == text


@BOTH_STORES
async def test_document_is_deleted(client: httpx.AsyncClient) -> None:
    await upload(client)
    assert (await client.delete("/v1/documents/light.md")).status_code == 204
    assert (await client.get("/v1/documents/light.md")).status_code == 404
    assert (await client.delete("/v1/documents/light.md")).status_code == 404
    hits = (await client.get("/v1/search", params={"q": "Pellowrig Light", "mode": "keyword"})).json()
    assert "light.md" not in [hit["document"] for hit in hits]


async def test_upload_with_unusable_file_names_is_refused(client: httpx.AsyncClient) -> None:
    for names in (["same.txt", "same.txt"], [".."], ["x" * 300 + ".txt"]):
        sent = [("files", (name, b"text")) for name in names]
        assert (await client.post("/v1/documents", files=sent)).status_code == 400, names
    both = [("files", ("a", b"text")), ("files", ("a/b.txt", b"text"))]
    refused = await client.post("/v1/documents", files=both)
    assert "'a' is the name of a file and of a folder" in refused.text
    inside = await client.post("/v1/documents", files=[("files", ("../../evil.txt", b"text"))])
    assert inside.status_code == 202


async def test_upload_of_folder_reports_each_file_once(client: httpx.AsyncClient, settings: Settings) -> None:
    files = {"house/a/README.md": "The first.", "house/b/README.md": "The second."}
    files |= {"house/empty.md": "", "house/song.mp3": "la"}
    first = await upload(client, files)
    assert first["outcomes"] == dict.fromkeys(["house/a/README.md", "house/b/README.md"], "added")
    failed = {each["source"]: each["problem"] for each in first["failed"]}
    assert (first["status"], failed.keys()) == ("done", {"house/empty.md", "house/song.mp3"})
    assert failed["house/empty.md"].startswith("house/empty.md: is empty")
    assert failed["house/song.mp3"].startswith("house/song.mp3: ")
    sources = [row["source"] for row in (await client.get("/v1/documents")).json()]
    assert sorted(sources) == ["house/a/README.md", "house/b/README.md"]
    second = await upload(client, {**files, "house/b/README.md": "Another."})
    assert second["outcomes"] == {"house/a/README.md": "unchanged", "house/b/README.md": "replaced"}
    assert len((await client.get("/v1/documents")).json()) == 2
    assert not list((settings.home / "uploads").glob("of-*/*"))
    shown = (await client.get(f"/v1/ingests/{second['id']}")).json()
    assert shown == second


async def test_documents_and_search_are_filtered(client: httpx.AsyncClient) -> None:
    tagged = "---\ntags: [light, tower]\nauthor: Ada Brask\n---\n\nThe light was painted white."
    await upload(client, {"light.md": FILES["light.md"], "tagged.md": tagged})
    [row] = (await client.get("/v1/documents", params={"where": "tag=tower author:brask"})).json()
    assert (row["id"], row["tags"], row["author"], row["language"]) == (
        "tagged.md",
        ["light", "tower"],
        "Ada Brask",
        "en",
    )
    assert row["date"]
    for mode in ("keyword", "hybrid", "graph"):
        hits = (await client.get("/v1/search", params={"q": "light", "mode": mode, "where": "!tag=tower"})).json()
        assert {hit["document"] for hit in hits} == {"light.md"}, mode
    refused = await client.get("/v1/search", params={"q": "light", "where": "tower"})
    assert refused.status_code == 400
    assert "FIELD=VALUE" in refused.text
    nothing = await client.post("/v1/runs", json={"question": "Who?", "method": "plain-rag", "where": "tag=none"})
    assert nothing.status_code == 400
    assert "No document matches" in nothing.text


ORIGINAL = "/v1/originals/light.md"


def copies(home: Path) -> list[Path]:
    return [path for path in (home / "originals").rglob("*") if path.is_file()]


@BOTH_STORES
async def test_upload_is_kept_replaced_and_deleted(client: httpx.AsyncClient, tmp_path: Path) -> None:
    await upload(client)
    assert (await client.get("/v1/documents/light.md")).json()["has_original"] is True
    original = await client.get(ORIGINAL)
    assert (original.status_code, original.text) == (200, FILES["light.md"])
    await upload(client, {"light.md": "It fell in 1950."})
    assert (await client.get(ORIGINAL)).text == "It fell in 1950."
    assert len(copies(tmp_path / "home")) == len(FILES)
    await client.delete("/v1/documents/light.md")
    missing = await client.get(ORIGINAL)
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
    headers = (await client.get(f"/v1/originals/{name}")).headers
    assert headers["content-type"] == media_type
    assert headers["content-disposition"] == f'{disposition}; filename="{name}"'
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]


async def test_server_keeps_no_uploads_if_turned_off(serving: Serve, tmp_path: Path) -> None:
    async with serving(keep_originals=False, filled=True) as client:
        assert (await client.get("/v1/documents/light.md")).json()["has_original"] is False
        missing = await client.get(ORIGINAL)
        assert missing.status_code == 404
        assert "There is no original 'light.md'. No copy of its file is kept." in missing.json()["error"]["message"]
    assert copies(tmp_path / "home") == []


async def test_example_questions_are_of_titles_and_headings(client: httpx.AsyncClient) -> None:
    assert (await client.get("/v1/examples")).json() == []
    headed = "# Rules\n\nOf the house.\n\n## Sheet 1\n\nPaper.\n\n## Introduction\n\nRead this."
    headed += "\n\n## 2.1 Notice of leave\n\nFour weeks.\n"
    await upload(client, {"light.md": FILES["light.md"], "rules.md": headed})
    assert (await client.get("/v1/examples")).json() == [
        "What is known about The Pellowrig Light?",
        "What does “Rules” state about “Notice of leave”?",
    ]
