"""Documents: upload, list, show, delete; passages and search."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, BinaryIO

from fastapi import APIRouter, Depends, File, Query, UploadFile
from fastapi.sse import EventSourceResponse, ServerSentEvent

from sleuth.studio.server.ingestion import Ingest
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.schemas import runs as forms
from sleuth.studio.server.schemas.errors import STREAM_ERRORS
from sleuth.studio.server.state import House, TheHouse
from sleuth.tools.collection import Collection
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.search import Query as Wanted
from sleuth.tools.search import find_mode
from sleuth.tools.types import hit_to_json

router = APIRouter(prefix="/v1", tags=["documents"])

MOST_FILES = 1000
MOST_NAME = 200


async def _library(house: TheHouse, owner: Owner) -> Collection:
    return await house.tenants.library(owner)


LibraryDep = Annotated[Collection, Depends(_library)]


@router.get("/documents")
async def list_documents(
    *,
    library: LibraryDep,
    house: TheHouse,
    owner: Owner,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str, Query(max_length=4096, description="go on after this id")] = "",
    find: Annotated[str, Query(max_length=200, description="only those with this in their title")] = "",
) -> list[forms.DocumentRow]:
    """Documents by id."""
    found = await library.documents(limit=limit, after=after, find=find)
    return [
        forms.DocumentRow(
            id=each.id,
            title=each.title,
            source=_source(each.source, house, owner),
            media_type=each.media_type,
            passages=each.passages,
            added_at=each.added_at,
        )
        for each in found
    ]


@router.post("/documents", status_code=202)
async def upload(files: Annotated[list[UploadFile], File()], house: TheHouse, owner: Owner) -> forms.Taken:
    """Takes files, and reads them in, in the background; one of a name that is there already takes its place."""
    if not 0 < len(files) <= MOST_FILES:
        raise UsageError(f"Send between 1 and {MOST_FILES:,} files in the field `files`.")
    named: dict[str, BinaryIO] = {}
    for file in files:
        name = _name(file.filename or "")
        if name in named:
            raise UsageError(f"There are two files of the name {name!r}.")
        named[name] = file.file
    return forms.Taken(ingest=(await house.ingests.add(owner, named)).id)


def _name(given: str) -> str:
    """A file's name without folders; raises UsageError where it has none that can be used."""
    name = given.replace("\\", "/").rpartition("/")[2]
    if not name.strip(". ") or not name.isprintable() or len(name.encode()) > MOST_NAME:
        raise UsageError(f"Each file needs a name, of at most {MOST_NAME} bytes and with letters that can be printed.")
    return name


def _source(path: str, house: House, owner: str) -> str:
    """Where a document comes from; of an upload its name, since its path is nobody's business."""
    folder = house.ingests.folder_of(owner)
    return Path(path).name if Path(path).is_relative_to(folder) else path


@router.get("/documents/{id:path}")
async def show_document(id: str, library: LibraryDep, house: TheHouse, owner: Owner) -> forms.DocumentView:
    """A document with its text, and where its passages are in it."""
    document = await library.document(id)
    spans = [forms.Span(id=each.id, start=each.start, end=each.end) for each in await library.passages_of(id)]
    return forms.DocumentView(
        id=document.id,
        title=document.title,
        source=_source(document.source, house, owner),
        media_type=document.media_type,
        added_at=document.added_at,
        text=document.text,
        passages=spans,
    )


@router.delete("/documents/{id:path}", status_code=204)
async def delete_document(id: str, library: LibraryDep, house: TheHouse) -> None:
    """Deletes a document from the catalogue and every index; runs that have read it keep what they read."""
    async with house.door.open("exclusive"):
        await library.delete([id])


async def _ingest(id: str, house: TheHouse, owner: Owner) -> Ingest:
    return await house.ingests.get(owner, id)


Known = Annotated[Ingest, Depends(_ingest)]


@router.get("/ingests/{id}")
async def show_ingest(ingest: Known) -> forms.IngestView:
    """How far an upload has been read."""
    return forms.IngestView(**ingest.to_json())


@router.post("/ingests/{id}/stop", status_code=202)
async def stop_ingest(ingest: Known, house: TheHouse, owner: Owner) -> forms.IngestView:
    """Reads no further file of an upload; what was read stays. Until the file in hand is done it is `stopping`."""
    return forms.IngestView(**(await house.ingests.stop(owner, ingest.id)).to_json())


@router.get("/ingests/{id}/events", response_class=EventSourceResponse, responses=STREAM_ERRORS)
async def ingest_events(ingest: Known, house: TheHouse) -> AsyncIterator[ServerSentEvent]:
    """The same as it changes: each `progress` is the whole of it, the last one is `done`."""
    async for each in house.ingests.follow(ingest):
        view = forms.IngestView(**each.to_json())
        yield ServerSentEvent(event="done" if each.done else "progress", raw_data=view.model_dump_json())


@router.get("/passages/{id:path}")
async def show_passage(id: str, library: LibraryDep) -> forms.PassageView:
    """A passage."""
    found = await library.passages([id])
    if not found:
        raise UnknownName("passage", id, [])
    passage = found[0]
    return forms.PassageView(
        id=passage.id,
        document=passage.document_id,
        title=passage.title,
        text=passage.text,
        start=passage.start,
        end=passage.end,
    )


@router.get("/search")
async def search(
    library: LibraryDep,
    house: TheHouse,
    q: Annotated[str, Query(min_length=1, max_length=20_000)],
    mode: Annotated[str, Query(max_length=20)] = "hybrid",
    k: Annotated[int, Query(ge=1, le=1000)] = 5,
) -> list[forms.HitView]:
    """The best passages for a query, without asking a model."""
    async with house.door.open("shared"):
        hits = await library.search(Wanted(text=q, k=k, mode=find_mode(mode)))
    return [forms.HitView.model_validate(hit_to_json(hit)) for hit in hits]
