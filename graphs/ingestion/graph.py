"""Ingestion of documents as a graph: list the files, then read a batch while the previous one is embedded.

After a kill the same call resumes. The catalogue is the source of truth, a batch that is read twice is skipped as
unchanged, and the indexes follow the journal of the catalogue.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from operator import add
from pathlib import Path
from typing import Annotated, Any, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import StreamWriter
from typing_extensions import TypedDict

from sleuth.graphs.core import PrivateGraph
from sleuth.graphs.persistence import CheckpointSerializer, SqliteCheckpoints
from sleuth.tools.collection import Collection, FileCursor, OnIndexed, never_stopped
from sleuth.tools.documents import take_passed_over
from sleuth.tools.errors import StoreDamaged, StoreError
from sleuth.tools.search import IndexName
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage import Difference, hold

SCHEMA_VERSION = 1
# Failures in the report; each one is also shown when it happens.
_FAILURES_KEPT = 20
# The loop ends with the list of files; the graph's own bound must never end it.
_NO_LIMIT = 1_000_000_000


def first_few(kept: list[str], new: list[str]) -> list[str]:
    """Return the first lines, so that a checkpoint stays small however many files fail."""
    return [*kept, *new][:_FAILURES_KEPT]


@dataclass(frozen=True, kw_only=True)
class IngestInput:
    """The files to ingest."""

    roots: list[str]
    """Files and folders as they were named."""
    worklist: str
    """File that contains the list of files."""


@dataclass(frozen=True, kw_only=True)
class IngestState(IngestInput):
    """A place in the list of files, and counts: a few hundred bytes at every step."""

    schema_version: int = SCHEMA_VERSION
    """Layout version of the state."""
    total: int = 0
    """Files on the list."""
    offset: int = 0
    """Byte offset of the next file in the list."""
    line: int = 0
    """Lines read of the corpus at that offset."""
    all_read: bool = False
    """True at the end of the list, or if the ingest was stopped."""
    files: Annotated[int, add] = 0
    """Files read to their end, failed ones included."""
    added: Annotated[int, add] = 0
    """New documents."""
    updated: Annotated[int, add] = 0
    """Documents that had changed."""
    unchanged: Annotated[int, add] = 0
    """Documents that were skipped."""
    passages: Annotated[int, add] = 0
    """Passages that entered the catalogue."""
    failed: Annotated[int, add] = 0
    """Files and corpus lines that could not be read."""
    warnings: Annotated[list[str], first_few] = field(default_factory=list)
    """The first reasons for failures, and other warnings."""


class IngestUpdate(TypedDict, total=False):
    """State fields that a node changes."""

    total: int
    offset: int
    line: int
    all_read: bool
    files: int
    added: int
    updated: int
    unchanged: int
    passages: int
    failed: int
    warnings: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestContext:
    """Dependencies of an ingest; when `stopped` returns True, nothing more is read.

    `only` restricts the ingest to some of the files.
    """

    library: Collection
    stopped: Callable[[], bool] = never_stopped
    only: Container[Path] | None = None


async def discover(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """List the files to read."""
    roots, context = [Path(root) for root in state.roots], runtime.context
    found = await context.library.list_files(Path(state.worklist), roots, context.only)
    runtime.stream_writer({"total": found.files})
    return {"total": found.files, "warnings": [] if found.files else ["There is nothing to read there."]}


async def read(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """Read a batch of documents into the catalogue."""
    stopped = runtime.context.stopped
    if stopped():
        return {"all_read": True}
    place = FileCursor(offset=state.offset, line=state.line)
    batch, stored = await runtime.context.library.ingest_batch(Path(state.worklist), place, stopped=stopped)
    for failure in batch.failures:
        runtime.stream_writer({"failure": failure})
    update = IngestUpdate(
        files=batch.files,
        added=stored.added,
        updated=stored.updated,
        unchanged=stored.unchanged,
        passages=stored.passages,
        failed=len(batch.failures),
        warnings=[*batch.failures, *batch.notes],
    )
    counts = {"files": state.files + batch.files, "total": state.total, "stored": stored.passages}
    runtime.stream_writer({**counts, "differences": batch.files_of(stored)})
    if batch.next_place is None or stopped():
        return {**update, "all_read": True}
    return {**update, "offset": batch.next_place.offset, "line": batch.next_place.line}


async def embed(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """Update the indexes from the catalogue: the slow part, in parallel with reading the next batch."""
    library = runtime.context.library
    await library.catch_up(on_indexed=count_embedded(runtime.stream_writer, library.slowest))
    return {}


async def report(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """Delete what is left of replaced passages, add repairs to the warnings, and remove the list of files."""
    await runtime.context.library.stop_workers()
    await runtime.context.library.finish_change()
    await asyncio.to_thread(Path(state.worklist).unlink, missing_ok=True)
    return {"warnings": runtime.context.library.notes}


def after_read(state: IngestState) -> list[Literal["read", "embed"]]:
    """Embed the batch, and read the next one in parallel if there is one."""
    return ["embed"] if state.all_read else ["read", "embed"]


def after_embed(state: IngestState) -> Literal["report", "__end__"]:
    """Report after the last batch; before that the parallel reading continues the loop."""
    return "report" if state.all_read else "__end__"


def graph() -> StateGraph[IngestState, IngestContext, IngestInput, IngestState]:
    """Return the uncompiled graph of an ingest."""
    builder = StateGraph(IngestState, context_schema=IngestContext, input_schema=IngestInput)
    builder.add_node(discover)
    builder.add_node(read)
    builder.add_node(embed)
    builder.add_node(report)
    builder.add_edge(START, "discover")
    builder.add_edge("discover", "read")
    builder.add_conditional_edges("read", after_read)
    builder.add_conditional_edges("embed", after_embed)
    builder.add_edge("report", END)
    return builder


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestProgress:
    """Counts since the start of this call.

    `failure` is the reason why a file has just failed; `differences` are the files that were just stored, by path.
    """

    files: int = 0
    total: int = 0
    stored: int = 0
    embedded: int = 0
    failure: str | None = None
    differences: Mapping[str, Difference] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class IngestReport:
    """Result of an ingest; counts include the work before an interruption.

    `warnings` contains the first failures, `passed_over` all files that were not tried, each with the reason.
    """

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    passages: int = 0
    seconds: float = 0.0
    resumed: bool = False
    warnings: list[str] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)


OnProgress = Callable[[IngestProgress], None]


class ProgressReporter:
    """Adds up the events of the nodes and passes the sums to a callback."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._now = IngestProgress()
        self._on_progress = on_progress

    def show(self, event: dict[str, Any]) -> None:
        """Add the passages of an event to the sums; its other values replace the present ones."""
        sums = {name: getattr(self._now, name) + event[name] for name in ("stored", "embedded") if name in event}
        self._now = replace(self._now, **({"failure": None, "differences": {}} | event | sums))
        if self._on_progress is not None:
            self._on_progress(self._now)


def count_embedded(writer: Callable[[dict[str, Any]], None] | StreamWriter, slowest: IndexName) -> OnIndexed:
    """Return a callback for indexing; a passage counts when it is in the slowest index, which is updated last."""

    def on_indexed(index: IndexName, passages: int) -> None:
        if index == slowest:
            writer({"embedded": passages})

    return on_indexed


async def ingest(
    paths: Sequence[Path],
    *,
    settings: Settings,
    on_progress: OnProgress | None = None,
    rebuild: bool = False,
    embedder: Embedder | None = None,
) -> IngestReport:
    """Ingest files, folders and corpora into the collection. The same call resumes an interrupted ingest.

    `rebuild` first rebuilds the indexes with the present embedder; it needs no paths. The collection can be searched
    meanwhile: other processes are excluded only while the new indexes replace the present ones.

    Raises:
        UsageError: a path does not exist.
        StoreBusy: another process uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    began = time.monotonic()
    progress = ProgressReporter(on_progress)
    if rebuild:
        async with (
            hold(settings.home, "shared", command="sleuth ingest --rebuild", wait=settings.wait),
            await Collection.open(settings, embedder=embedder, check_embedder=False) as library,
        ):
            await library.build_draft(on_indexed=count_embedded(progress.show, library.slowest))
    async with (
        hold(settings.home, "exclusive", command="sleuth ingest", wait=settings.wait),
        await Collection.open(settings, embedder=embedder, check_embedder=not rebuild) as library,
    ):
        if rebuild:
            await library.rebuild(on_indexed=count_embedded(progress.show, library.slowest))
        context = IngestContext(library=library)
        done = await _run(paths, settings, context, progress) if paths else IngestReport(warnings=library.notes)
    return replace(done, seconds=time.monotonic() - began)


async def ingest_into(
    paths: Sequence[Path],
    *,
    settings: Settings,
    library: Collection,
    on_progress: OnProgress | None = None,
    stopped: Callable[[], bool] = never_stopped,
    only: Container[Path] | None = None,
) -> IngestReport:
    """Ingest files, or those of them that are in `only`, into an open collection.

    The caller holds the exclusive lock on SLEUTH_HOME.

    It always starts at the first file: files of the same names may have other contents than those of an interrupted
    call. Stored documents are skipped. When `stopped` returns True, the ingest ends after the documents that were read,
    which are complete and in all indexes.
    """
    began = time.monotonic()
    context = IngestContext(library=library, stopped=stopped, only=only)
    report = await _run(paths, settings, context, ProgressReporter(on_progress), restart=True)
    return replace(report, seconds=time.monotonic() - began)


async def _run(
    paths: Sequence[Path],
    settings: Settings,
    context: IngestContext,
    progress: ProgressReporter,
    *,
    restart: bool = False,
) -> IngestReport:
    roots = [str(await asyncio.to_thread(path.absolute)) for path in paths]
    # With the version: an ingest that another release began starts again, which is cheap: stored files are skipped.
    key = [str(SCHEMA_VERSION), settings.owner, settings.collection, *sorted(roots)]
    thread = sha256("\0".join(key).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    worklist = settings.home / "ingest" / f"{thread}.jsonl"
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": _NO_LIMIT}
    async with _checkpoints(settings.home / "ingest") as saver:
        compiled = PrivateGraph(graph()).compile(checkpointer=saver, name="ingest")
        # The last node removes the list. The state's `next` would not do: it is also empty between the end of a node
        # and the end of its step.
        listed = not restart and await asyncio.to_thread(worklist.exists)
        resumed = listed and await saver.aget_tuple(config) is not None
        if not resumed:
            await saver.adelete_thread(thread)
        async for event in compiled.astream(
            None if resumed else IngestInput(roots=roots, worklist=str(worklist)),
            config,
            context=context,
            stream_mode="custom",
            durability="sync",
        ):
            progress.show(event)
        state = IngestState(**(await compiled.aget_state(config)).values)
        await saver.adelete_thread(thread)
    return _report(state, resumed, await asyncio.to_thread(take_passed_over, worklist))


def _report(state: IngestState, resumed: bool, passed_over: list[str]) -> IngestReport:
    again = ["Resumed an interrupted ingest. Run it again to ingest files that were added or changed since it began."]
    counts = {name: getattr(state, name) for name in ("added", "updated", "unchanged", "failed", "passages")}
    warnings = [*(again if resumed else []), *state.warnings]
    return IngestReport(**counts, resumed=resumed, warnings=warnings, passed_over=passed_over)


@asynccontextmanager
async def _checkpoints(folder: Path) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Open the checkpoints of ingests; they stay on this machine, like the files that they name."""
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        async with SqliteCheckpoints.open(folder / "checkpoints.db", CheckpointSerializer()) as saver:
            yield saver
    except (sqlite3.DatabaseError, StoreDamaged) as error:
        reason = getattr(error, "reason", f"{error}.")
        raise StoreError(
            f"The ingest's checkpoints in {folder} cannot be used: {reason} Check the disk's free space. "
            "Delete that folder and ingest again: stored documents are skipped."
        ) from error
