"""Uploads: retried until they are ingested, or stopped; ingested files stay complete and indexed."""

import asyncio
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from blocking_model import CORPUS, LINES, Gated
from full_disk import full_disk
from hashing_embedder import HashingEmbedder
from index_contents import held
from postgres_fixture import IN_POSTGRES
from serve_scene import ANNA, BEN, KEYS, Serve, ended, events_in, send, upload

from sleuth.studio.server import ingestion as ingests
from sleuth.tools.errors import EmbedderChanged, ModelUnavailable
from sleuth.tools.search.vectors.embedder import Vectors
from sleuth.tools.settings import Settings
from sleuth.tools.storage.locks import HomeLock, LockMode


class Away(HashingEmbedder):
    """Embeds nothing as long as it has something to complain about."""

    def __init__(self, complaint: Exception | None) -> None:
        super().__init__()
        self.complaint = complaint

    def embed_passages(self, texts: list[str]) -> Vectors:
        if self.complaint:
            raise self.complaint
        return super().embed_passages(texts)


@pytest.fixture
def gated() -> Gated:
    return Gated()


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingests, "FIRST_PAUSE", 0.05)
    monkeypatch.setattr(ingests, "LONGEST_PAUSE", 0.2)


async def complaint(client: httpx.AsyncClient, ingest: str) -> Any:
    """Return the state of an upload after its first failure."""
    async with asyncio.timeout(300):
        while not (found := (await client.get(f"/v1/ingests/{ingest}")).json())["failed"]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return found


async def text_of(client: httpx.AsyncClient, document: str) -> str:
    return str((await client.get(f"/v1/documents/{document}")).json()["text"])


def files_in(settings: Settings) -> list[Path]:
    return [path for path in (settings.home / "uploads").rglob("*") if path.is_file()]


async def test_upload_waits_for_the_embedder_and_delays_the_next(serving: Serve, settings: Settings) -> None:
    embedder = Away(ModelUnavailable("The embeddings are away: start them."))
    async with serving(embedder=embedder) as client:
        first = await send(client, {"notes.txt": "The first notes."})
        waiting = await complaint(client, first)
        assert (waiting["status"], waiting["done"]) == ("waiting", False)
        assert waiting["failed"] == [{"source": "", "problem": "The embeddings are away: start them."}]
        second = await send(client, {"notes.txt": "The second notes."})
        embedder.complaint = None
        for ingest in (first, second):
            last = await ended(client, ingest)
            assert (last["status"], last["read"], last["failed"]) == ("done", 1, [])
        assert await text_of(client, "notes.txt") == "The second notes."
        hits = (await client.get("/v1/search", params={"q": "second notes", "mode": "dense"})).json()
        assert [hit["text"] for hit in hits] == ["The second notes."]
    assert not files_in(settings)


async def test_waiting_upload_is_stopped_or_ingested_after_a_restart(serving: Serve) -> None:
    async with serving(embedder=Away(ModelUnavailable("They are away."))) as client:
        stopped, ingest = [await send(client, {"notes.txt": text}) for text in ("Old notes.", "The notes.")]
        await complaint(client, stopped)
        await client.post(f"/v1/ingests/{stopped}/stop")
        assert (await ended(client, stopped))["status"] == "stopped"
        await complaint(client, ingest)
    async with serving(embedder=HashingEmbedder()) as client:
        assert (await ended(client, ingest))["status"] == "done"
        assert await text_of(client, "notes.txt") == "The notes."


async def test_waiting_upload_does_not_delay_other_owners(serving: Serve) -> None:
    class Picky(Away):
        def embed_passages(self, texts: list[str]) -> Vectors:
            return HashingEmbedder.embed_passages(self, texts) if "ben" in texts[0] else super().embed_passages(texts)

    async with serving(keys=KEYS, embedder=Picky(ModelUnavailable("They are away."))) as client:
        client.headers.update(ANNA)
        await complaint(client, await send(client, {"notes.txt": "What anna says."}))
        client.headers.update(BEN)
        assert (await ended(client, await send(client, {"notes.txt": "What ben says."})))["status"] == "done"


@pytest.mark.parametrize("mode", ["shared", "exclusive"])
async def test_upload_that_waits_names_the_other_process(serving: Serve, settings: Settings, mode: LockMode) -> None:
    async with serving(embedder=HashingEmbedder()) as client:
        await upload(client, {"notes.txt": "The first notes."})
        async with HomeLock(settings.home, "sleuth backup").hold(mode, wait=30.0):
            ingest = await send(client, {"more.txt": "More notes."})
            waiting = await complaint(client, ingest)
            assert waiting["status"] == "waiting"
            assert "in use by `sleuth backup`" in waiting["failed"][0]["problem"]
            if mode == "shared":  # those who search are not in the way of each other
                for _ in range(5):
                    hits = await client.get("/v1/search", params={"q": "first notes"})
                    assert [hit["text"] for hit in hits.json()] == ["The first notes."]
        last = await ended(client, ingest)
        assert (last["status"], last["read"], last["failed"]) == ("done", 1, [])


@pytest.mark.nightly
async def test_same_bytes_sent_simultaneously_under_two_names_are_usable(serving: Serve) -> None:
    async with serving(keys=KEYS, embedder=HashingEmbedder()) as client:
        client.headers.update(ANNA)
        text = "The harbour bell was cast in 1871."
        sent = [{"one.txt": text}, {"two.txt": text}, {"one.txt": text, "three.txt": text}]
        for ingest in await asyncio.gather(*(send(client, files) for files in sent)):
            assert (await ended(client, ingest))["status"] == "done"
        names = [each["id"] for each in (await client.get("/v1/documents")).json()]
        assert names
        for name in names:
            assert await text_of(client, name) == text
        hits = (await client.get("/v1/search", params={"q": "harbour bell"})).json()
        assert [hit["text"] for hit in hits] == [text]


async def test_permanent_error_ends_an_upload(serving: Serve, settings: Settings) -> None:
    embedder = Away(EmbedderChanged("Built by another: rebuild it."))
    async with serving(embedder=embedder) as client:
        last = await ended(client, await send(client, {"notes.txt": "The notes."}))
        assert (last["status"], last["failed"][0]["problem"]) == ("failed", "Built by another: rebuild it.")
        embedder.complaint = None
        assert (await upload(client, {"notes.txt": "The notes."}))["status"] == "done"
    assert not files_in(settings)


@IN_POSTGRES
async def test_servers_with_separate_homes_ignore_each_others_uploads(serving: Serve, tmp_path: Path) -> None:
    async with serving(embedder=Away(ModelUnavailable("They are away."))) as client:
        ingest = await send(client, {"notes.txt": "The notes."})
        await complaint(client, ingest)
    async with serving(home=tmp_path / "other", embedder=HashingEmbedder()) as client:
        assert (await upload(client, {"others.txt": "Other notes."}))["status"] == "done"
        assert not (await client.get(f"/v1/ingests/{ingest}")).json()["done"]
    async with serving(embedder=HashingEmbedder()) as client:
        last = await ended(client, ingest)
        assert (last["status"], last["read"], last["failed"]) == ("done", 1, [])
        assert await text_of(client, "notes.txt") == "The notes."


async def test_servers_with_one_home_ingest_an_upload_once(serving: Serve, gated: Gated) -> None:
    async with serving(embedder=gated) as first:
        ingest = await send(first, {"notes.txt": "The notes."})
        await asyncio.to_thread(gated.reached.wait)
        async with serving(embedder=HashingEmbedder()) as second:
            gated.gate.set()
            done = await ended(first, ingest)
            assert (done["status"], done["read"], done["failed"]) == ("done", 1, [])
            assert (await upload(second, {"others.txt": "Other notes."}))["status"] == "done"
            assert (await second.get(f"/v1/ingests/{ingest}")).json() == done
            assert await ended(second, ingest) == done


@pytest.mark.parametrize("size", [10, 2_000_000])
async def test_full_disk_refuses_an_upload_completely(serving: Serve, settings: Settings, size: int) -> None:
    async with serving(embedder=HashingEmbedder()) as client:
        await upload(client, {"first.txt": "The first notes."})
        with full_disk():
            refused = await client.post("/v1/documents", files=[("files", ("notes.txt", b"x" * size))])
        assert (refused.status_code, refused.json()["error"]["type"]) == (503, "store_error")
        assert not files_in(settings)
        assert (await upload(client, {"notes.txt": "The notes."}))["status"] == "done"


async def stop(client: httpx.AsyncClient, ingest: str) -> Any:
    stopped = await client.post(f"/v1/ingests/{ingest}/stop")
    assert stopped.status_code == 202, stopped.text
    return stopped.json()


def whole(settings: Settings) -> int:
    """Return the number of passages, which must be the same in every store."""
    (count, ids), *indexes = held(settings)
    assert indexes == [(count, ids)] * len(indexes)
    return count


@pytest.mark.nightly
async def test_stopped_upload_keeps_ingested_files_and_skips_the_rest(
    serving: Serve, settings: Settings, gated: Gated
) -> None:
    async with serving(embedder=gated) as client:
        ingest = await send(client, CORPUS)
        await asyncio.to_thread(gated.reached.wait)
        assert (await stop(client, ingest))["status"] == "stopping"
        gated.gate.set()
        last = await ended(client, ingest)
        assert (last["status"], last["read"], last["total"], last["failed"]) == ("stopped", 0, 1, [])
        assert await stop(client, ingest) == last, "a second stop changed something"
        kept = [row["id"] for row in (await client.get("/v1/documents?limit=1000")).json()]
    assert 0 < whole(settings) < LINES
    async with serving(embedder=HashingEmbedder()) as client:
        assert (await client.get(f"/v1/ingests/{ingest}")).json() == last
        assert [row["id"] for row in (await client.get("/v1/documents?limit=1000")).json()] == kept, "it was read on"
        again = await upload(client, CORPUS)
        assert again["status"] == "done"
    assert whole(settings) == LINES, "the same upload did not begin anew"


async def test_queued_upload_can_be_stopped(serving: Serve, gated: Gated) -> None:
    files = {"one.txt": "The first file.", "two.txt": "The second file."}
    async with serving(embedder=gated) as client:
        first = await send(client, files)
        await asyncio.to_thread(gated.reached.wait)
        second = await send(client, {"one.txt": "Something else.", "three.txt": "The third file."})
        assert (await stop(client, second))["status"] == "stopped"
        gated.gate.set()
        assert (await ended(client, first))["status"] == "done"
        assert {row["id"] for row in (await client.get("/v1/documents")).json()} == set(files)
        assert "first" in (await client.get("/v1/documents/one.txt")).json()["text"]


async def test_files_of_an_archive_count_in_the_progress_of_an_upload(serving: Serve) -> None:
    packed = BytesIO()
    with ZipFile(packed, "w") as archive:
        for name in ("b.txt", "c.txt", "picture.png"):
            archive.writestr(name, f"The text of {name}.")
    async with serving() as client:
        sent = [("files", ("a.txt", b"The rent.")), ("files", ("more.zip", packed.getvalue()))]
        ingest = (await client.post("/v1/documents", files=sent)).json()["ingest"]
        followed = events_in((await client.get(f"/v1/ingests/{ingest}/events")).text)
        assert all(state["read"] <= state["total"] for _, _, state in followed)
        end = followed[-1][2]
        assert (end["status"], end["read"], end["total"], len(end["files"])) == ("done", 3, 3, 2)


async def test_own_fields_of_an_upload_can_be_filtered(serving: Serve) -> None:
    async with serving() as client:
        sent = [("files", (name, text)) for name, text in (("a.txt", b"The rent."), ("b.txt", b"The dues."))]
        sent.append(("files", ("b.txt.meta.json", b'{"client": "Edric"}')))
        taken = await client.post("/v1/documents", files=sent, data={"meta": '{"client": "Ada", "author": "Rosa"}'})
        end = await ended(client, taken.json()["ingest"])
        assert (end["read"], end["total"], end["failed"]) == (2, 2, [])
        listed = (await client.get("/v1/documents", params={"where": "client=ada"})).json()
        assert [(row["id"], row["author"], row["meta"]) for row in listed] == [("a.txt", "Rosa", {"client": "Ada"})]
        assert (await client.get("/v1/documents/b.txt")).json()["meta"] == {"client": "Edric"}
        refused = await client.post("/v1/documents", files=sent[:1], data={"meta": "client=Ada"})
        assert refused.status_code == 400 and "JSON object" in refused.text
