"""Documents: upload, list, show, delete; passages and search."""

import json
import re
from dataclasses import asdict, replace
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, File, Form, Query, Response, UploadFile
from starlette.responses import FileResponse

from sleuth.studio.server.ingestion import Ingest
from sleuth.studio.server.middleware.auth import Owner
from sleuth.studio.server.protocols.streaming import DESCRIPTION, EventStream, encode_event
from sleuth.studio.server.schemas import runs as forms
from sleuth.studio.server.schemas.checked import CheckedRoute
from sleuth.studio.server.state import ServerState, ServerStateDep
from sleuth.tools.collection import Collection
from sleuth.tools.documents.loading import SIDECAR
from sleuth.tools.documents.readers import media_type_of
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.ingestion.ingestion import Ingestion
from sleuth.tools.places import at_words
from sleuth.tools.search import Query as SearchQuery
from sleuth.tools.search import find_mode
from sleuth.tools.search.retriever import MAX_QUERY_CHARS
from sleuth.tools.storage.catalogue import Listed
from sleuth.tools.storage.filters import EXAMPLE, MAX_CHARS
from sleuth.tools.types import hit_to_json

router = APIRouter(prefix="/v1", tags=["documents"], route_class=CheckedRoute)

MAX_FILES = 1000
MAX_META_CHARS = 10_000
META = 'properties of the documents as a JSON object: "title", "author", "date", "tags" and own fields for filters'
MAX_NAME_BYTES = 200
MAX_PATH_BYTES = 1000

NO_ORIGINAL = (
    "No copy of its file is kept. Upload it again, or ingest it with --keep-originals; SLEUTH_KEEP_ORIGINALS=false "
    "turns copies off."
)

SANDBOX = "default-src 'none'; frame-ancestors 'none'; sandbox"
"""Policy of an original: a browser that opens it runs nothing in it."""

SHOWN = frozenset(
    {f"image/{kind}" for kind in ("png", "jpeg", "gif", "webp")}
    | {f"text/{kind}" for kind in ("plain", "markdown", "csv", "x-source")}
    | {"application/pdf"}
)
"""Media types that a browser may show; it saves other files."""

SEARCHED = f"of a longer text, the first {MAX_QUERY_CHARS:,} characters are searched"

ORIGINAL: dict[int | str, dict[str, Any]] = {200: {"content": {"*/*": {}}, "description": "The file."}}

Where = Annotated[str, Query(max_length=MAX_CHARS, description=f"only documents that match; example: {EXAMPLE}")]


async def _collection(server: ServerStateDep, owner: Owner) -> Collection:
    return await server.tenants.collection(owner)


CollectionDep = Annotated[Collection, Depends(_collection)]


@router.get("/documents")
async def list_documents(
    *,
    collection: CollectionDep,
    server: ServerStateDep,
    owner: Owner,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    after: Annotated[str, Query(max_length=4096, description="list documents after this id")] = "",
    find: Annotated[str, Query(max_length=200, description="list only documents whose title contains this text")] = "",
    where: Where = "",
) -> list[Listed]:
    """List documents by id."""
    documents = await collection.documents(limit=limit, after=after, find=find, where=where)
    return [replace(document, source=_source(document.source, server, owner)) for document in documents]


EXAMPLES = 3
MOST_LISTED = 200
_HEADING = re.compile(r"^#{1,6} +(?:\d+(?:\.\d+)*\.? +)?(\S.{2,58}\S)\s*$", re.MULTILINE)
_COMMON = {"abstract", "appendix", "contents", "introduction", "overview", "references", "summary", "table of contents"}
_UNNAMED = {"sheet", "slide", "tabelle", "feuil", "hoja"}
"""Headings that many documents have, and those that programs give to numbered sheets and slides."""


@router.get("/examples")
async def example_questions(collection: CollectionDep) -> list[str]:
    """Return questions to begin with, made of the titles and headings of some documents; no model is called."""
    documents = await collection.documents(limit=MOST_LISTED)
    step = max(1, len(documents) // EXAMPLES)
    return [await _example(document, collection) for document in documents[step // 2 :: step][:EXAMPLES]]


async def _example(document: Listed, collection: Collection) -> str:
    text = (await collection.document(document.id)).text
    common = _COMMON | _UNNAMED | {document.title.lower()}
    for heading in _HEADING.findall(text):
        if heading.lower().rstrip("0123456789 ") not in common:
            return f"What does “{document.title}” state about “{heading}”?"
    return f"What is known about {document.title}?"


@router.post("/documents", status_code=202)
async def upload(
    files: Annotated[list[UploadFile], File()],
    server: ServerStateDep,
    owner: Owner,
    meta: Annotated[str, Form(max_length=MAX_META_CHARS, description=META)] = "{}",
) -> forms.Taken:
    """Accept files and ingest them in the background; a file replaces the document of the same name.

    A name may contain folders, as in `reports/2025/plan.md`. A file `NAME.meta.json` has the properties of `NAME`.
    """
    properties = _properties(meta)
    if not 0 < len(files) <= MAX_FILES:
        raise UsageError(f"Send between 1 and {MAX_FILES:,} files in the field `files`.")
    named: dict[str, BinaryIO] = {}
    for file in files:
        name = _name(file.filename or "")
        if name in named:
            raise UsageError(f"Two files have the name {name!r}. Rename one of them.")
        named[name] = file.file
    for name in [name for name in named if properties and not name.endswith(SIDECAR)]:
        named.setdefault(f"{name}{SIDECAR}", BytesIO(properties))
    if clash := {str(parent) for name in named for parent in PurePosixPath(name).parents} & named.keys():
        raise UsageError(f"{min(clash)!r} is the name of a file and of a folder. Rename one of them.")
    return forms.Taken(ingest=(await server.ingestion.add(owner, named)).id)


def _properties(meta: str) -> bytes:
    """Return the properties in the field `meta` as the content of a file; raise UsageError for any other JSON."""
    try:
        value = json.loads(meta)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise UsageError(f'The field `meta` takes a JSON object, such as {{"client": "Ada"}}, not {meta!r:.100}.')
    return json.dumps(value).encode() if value else b""


def _name(path: str) -> str:
    """Return a file's name with its folders, always below the present one; raise UsageError if it cannot be used."""
    parts = [part for part in path.replace("\\", "/").split("/") if part.strip(". ")]
    name = "/".join(parts)
    is_short = len(name.encode()) <= MAX_PATH_BYTES and all(len(part.encode()) <= MAX_NAME_BYTES for part in parts)
    if not name.isprintable() or not name or not is_short or path.endswith(("/", "\\")):
        raise UsageError(
            f"Each file needs a name of printable characters and at most {MAX_NAME_BYTES} bytes, "
            f"with its folders at most {MAX_PATH_BYTES:,}."
        )
    return name


def _source(path: str, server: ServerState, owner: str) -> str:
    """Return the source of a document; for an upload its name as it was sent, because its path here is private."""
    folder = server.ingestion.uploads.folder_of(owner)
    return str(Path(path).relative_to(folder)) if Path(path).is_relative_to(folder) else path


@router.get("/originals/{id:path}", response_class=FileResponse, responses=ORIGINAL)
async def show_original(id: str, collection: CollectionDep) -> Response:
    """Return the file of a document, if a copy is kept: uploads by default, others with `--keep-originals`."""
    document, path = await collection.document(id), await collection.original(id)
    if path is None:
        raise UnknownName("original", id, [], NO_ORIGINAL)
    name = Path(document.source).name
    media_type = media_type_of(Path(name))
    disposition = "inline" if media_type in SHOWN else "attachment"
    headers = {"Content-Security-Policy": SANDBOX, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache"}
    return FileResponse(
        path, media_type=media_type, filename=name, headers=headers, content_disposition_type=disposition
    )


@router.get("/documents/{id:path}")
async def show_document(id: str, collection: CollectionDep, server: ServerStateDep, owner: Owner) -> forms.DocumentView:
    """Return a document with its text and the positions of its passages."""
    document = await collection.document(id)
    passages = await collection.passages_of(id)
    spans = [forms.Span(id=passage.id, start=passage.start, end=passage.end) for passage in passages]
    document = replace(document, source=_source(document.source, server, owner))
    has_original = await collection.original(id) is not None
    return forms.DocumentView(**asdict(document), passages=spans, has_original=has_original)


@router.delete("/documents/{id:path}", status_code=204)
async def delete_document(id: str, collection: CollectionDep, server: ServerStateDep) -> None:
    """Delete a document from the catalogue and all indexes; finished runs keep the passages they used."""
    async with server.home_lock.hold("exclusive"):
        await Ingestion(collection).delete([id])


async def _ingest(id: str, server: ServerStateDep, owner: Owner) -> Ingest:
    return await server.ingestion.get(owner, id)


IngestDep = Annotated[Ingest, Depends(_ingest)]


@router.get("/ingests/{id}")
async def show_ingest(ingest: IngestDep) -> Ingest:
    """Return the progress of an upload."""
    return ingest


@router.post("/ingests/{id}/stop", status_code=202)
async def stop_ingest(ingest: IngestDep, server: ServerStateDep, owner: Owner) -> Ingest:
    """Stop an upload; its ingested files stay. It is `stopping` until the current file is ingested."""
    return await server.ingestion.stop(owner, ingest.id)


@router.get("/ingests/{id}/events", response_class=Response, responses=DESCRIPTION)
async def ingest_events(ingest: IngestDep, server: ServerStateDep) -> EventStream:
    """Stream the progress of an upload: `progress` events with its whole state, the last one is `done`."""
    states = server.ingestion.follow(ingest)
    return EventStream.of(
        encode_event(state.model_dump_json(), event="done" if state.done else "progress") async for state in states
    )


@router.get("/passages/{id:path}")
async def show_passage(id: str, collection: CollectionDep) -> forms.PassageView:
    """Return a passage."""
    passages = await collection.passages([id])
    if not passages:
        raise UnknownName("passage", id, [])
    return forms.PassageView(**asdict(passages[0]), document=passages[0].document_id)


@router.get("/search")
async def search(
    *,
    collection: CollectionDep,
    server: ServerStateDep,
    q: Annotated[str, Query(min_length=1, max_length=20_000, description=SEARCHED)],
    mode: Annotated[str, Query(max_length=20)] = "hybrid",
    k: Annotated[int, Query(ge=1, le=1000)] = 5,
    where: Where = "",
) -> list[forms.HitView]:
    """Return the best passages for a query; no model is called."""
    async with server.home_lock.hold("search"):
        hits = await collection.search(SearchQuery(text=q, k=k, mode=find_mode(mode), where=where))
    return [forms.HitView.model_validate(hit_to_json(at_words(hit, q))) for hit in hits]
