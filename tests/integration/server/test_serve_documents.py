"""Documents over HTTP: sent, listed, shown, found, replaced, deleted."""

import httpx
from postgres_fixture import BOTH_STORES
from serve_scene import FILES, LIGHT, upload

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


async def test_unreadable_files_are_named_and_the_others_ingested(client: httpx.AsyncClient) -> None:
    last = await upload(client, {"light.md": FILES["light.md"], "song.mp3": "la", "empty.txt": ""})
    assert last["status"] == "done"
    assert {each["source"] for each in last["failed"]} == {"song.mp3", "empty.txt"}
    assert not any("/" in each["problem"].split(":")[0] for each in last["failed"]), "where files wait is shown"
    assert [each["id"] for each in (await client.get("/v1/documents")).json()] == ["light.md"]


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
    files = {"house/a/README.md": "The first.", "house/b/README.md": "The second.", "house/empty.md": ""}
    first = await upload(client, files)
    assert first["outcomes"] == dict.fromkeys(["house/a/README.md", "house/b/README.md"], "added")
    [failure] = first["failed"]
    assert failure["source"] == "house/empty.md"
    assert failure["problem"].startswith("house/empty.md: is empty")
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
