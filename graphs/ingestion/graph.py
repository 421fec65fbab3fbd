"""Reading documents in, as a state machine: list the files, then read a batch while the one before is embedded.

Killed at any moment, the same call goes on where it was: the catalogue is the truth, a batch that is read again is
found unchanged, and the indexes follow the catalogue's journal.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from operator import add
from pathlib import Path
from typing import Annotated, Literal

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from typing_extensions import TypedDict

from sleuth.graphs.core import PrivateGraph
from sleuth.graphs.ingestion.progress import Board, IngestProgress, IngestReport, OnProgress, tell
from sleuth.graphs.persistence import CheckpointSerializer, SqliteCheckpoints
from sleuth.tools.collection import Library, Place, never
from sleuth.tools.documents import take_passed_over
from sleuth.tools.errors import StoreDamaged, StoreError
from sleuth.tools.search.vectors import Embedder
from sleuth.tools.settings import Settings
from sleuth.tools.storage import hold

__all__ = [
    "IngestContext",
    "IngestInput",
    "IngestProgress",
    "IngestReport",
    "IngestState",
    "graph",
    "ingest",
    "read_in",
]

SCHEMA_VERSION = 1
# Shown in the report; every failure is shown as it happens.
_FAILURES_KEPT = 20
# The loop ends with the work-list, so the graph's own bound must never be what ends it.
_NO_LIMIT = 1_000_000_000


def first_few(kept: list[str], new: list[str]) -> list[str]:
    """Keeps the first lines, so that a checkpoint stays small however much fails."""
    return [*kept, *new][:_FAILURES_KEPT]


@dataclass(frozen=True, kw_only=True)
class IngestInput:
    """What to read."""

    roots: list[str]
    """Files and folders as they were named."""
    worklist: str
    """Where the list of files is kept."""


@dataclass(frozen=True, kw_only=True)
class IngestState(IngestInput):
    """A place in the list of files, and counts: a few hundred bytes at every step."""

    schema_version: int = SCHEMA_VERSION
    """Which release's state this is."""
    total: int = 0
    """Files on the list."""
    offset: int = 0
    """The byte of the list where the next file stands."""
    line: int = 0
    """Lines read of the corpus that stands there."""
    all_read: bool = False
    """Whether the list is at its end, or the rest of it is not wanted any more."""
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
    """The first reasons why, and what else is worth saying."""


class IngestUpdate(TypedDict, total=False):
    """What a node changes."""

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
    """What a run needs and its state cannot hold; once `stopped` says so, nothing more is read."""

    library: Library
    stopped: Callable[[], bool] = never


async def discover(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """Writes down which files there are to read."""
    found = await runtime.context.library.list_files(Path(state.worklist), [Path(root) for root in state.roots])
    runtime.stream_writer({"total": found.files})
    return {"total": found.files, "warnings": [] if found.files else ["There is nothing to read there."]}


async def read(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """Reads a batch of documents into the catalogue."""
    stopped = runtime.context.stopped
    if stopped():
        return {"all_read": True}
    place = Place(offset=state.offset, line=state.line)
    batch, stored = await runtime.context.library.take_in(Path(state.worklist), place, stopped=stopped)
    for failure in batch.failures:
        runtime.stream_writer({"failure": failure})
    update = IngestUpdate(
        files=batch.files,
        added=stored.added,
        updated=stored.updated,
        unchanged=stored.unchanged,
        passages=stored.passages,
        failed=len(batch.failures),
        warnings=batch.failures,
    )
    runtime.stream_writer({"files": state.files + batch.files, "total": state.total, "stored": stored.passages})
    if batch.next_place is None or stopped():
        return {**update, "all_read": True}
    return {**update, "offset": batch.next_place.offset, "line": batch.next_place.line}


async def embed(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """Brings the indexes to where the catalogue is: the slow part, done beside the next batch's reading."""
    library = runtime.context.library
    await library.catch_up(on_indexed=tell(runtime.stream_writer, library.slowest))
    return {}


async def report(state: IngestState, runtime: Runtime[IngestContext]) -> IngestUpdate:
    """Adds what the library had to mend, and clears the list away."""
    await asyncio.to_thread(Path(state.worklist).unlink, missing_ok=True)
    return {"warnings": runtime.context.library.notes}


def after_read(state: IngestState) -> list[Literal["read", "embed"]]:
    """Embeds what was read, and reads on beside it while there is more."""
    return ["embed"] if state.all_read else ["read", "embed"]


def after_embed(state: IngestState) -> Literal["report", "__end__"]:
    """Ends with the last batch; before that the reading beside it goes on."""
    return "report" if state.all_read else "__end__"


def graph() -> StateGraph[IngestState, IngestContext, IngestInput, IngestState]:
    """The ingest, not compiled."""
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


async def ingest(
    paths: Sequence[Path],
    *,
    settings: Settings,
    on_progress: OnProgress | None = None,
    rebuild: bool = False,
    embedder: Embedder | None = None,
) -> IngestReport:
    """Reads files, folders and corpora into the collection; goes on with the same call where it was interrupted.

    `rebuild` first builds the indexes anew with the present embedder; it may come without paths.

    Raises:
        UsageError: a path is not there.
        StoreBusy: somebody else uses the store.
        EmbedderChanged: the collection was built with another embedder.
    """
    began = time.monotonic()
    board = Board(on_progress)
    async with (
        hold(settings.home, "exclusive", command="sleuth ingest"),
        await Library.open(settings, embedder=embedder, check_embedder=not rebuild) as library,
    ):
        if rebuild:
            await library.rebuild(on_indexed=tell(board.show, library.slowest))
        context = IngestContext(library=library)
        done = await _run(paths, settings, context, board) if paths else IngestReport(warnings=library.notes)
    return replace(done, seconds=time.monotonic() - began)


async def read_in(
    paths: Sequence[Path],
    *,
    settings: Settings,
    library: Library,
    on_progress: OnProgress | None = None,
    stopped: Callable[[], bool] = never,
) -> IngestReport:
    """Like `ingest`, with a library that is open; the caller holds the exclusive lock on SLEUTH_HOME.

    Always from the beginning: files of the same names may be others than those at which an earlier call broke off.
    What is stored is skipped. Once `stopped` says so it ends with the documents that were read: they are whole, and in
    every index.
    """
    began = time.monotonic()
    context = IngestContext(library=library, stopped=stopped)
    report = await _run(paths, settings, context, Board(on_progress), anew=True)
    return replace(report, seconds=time.monotonic() - began)


async def _run(
    paths: Sequence[Path], settings: Settings, context: IngestContext, board: Board, *, anew: bool = False
) -> IngestReport:
    roots = [str(await asyncio.to_thread(path.absolute)) for path in paths]
    # The version: what another release left half-way is read anew, and costs little, since what is stored is skipped.
    key = [str(SCHEMA_VERSION), settings.owner, settings.collection, *sorted(roots)]
    thread = sha256("\0".join(key).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    worklist = settings.home / "ingest" / f"{thread}.jsonl"
    config: RunnableConfig = {"configurable": {"thread_id": thread}, "recursion_limit": _NO_LIMIT}
    async with _checkpoints(settings.home / "ingest") as saver:
        compiled = PrivateGraph(graph()).compile(checkpointer=saver, name="ingest")
        # The last node takes the list away. The state's `next` is no sign: it is also empty between the end of a node
        # and the end of its step.
        left = not anew and await asyncio.to_thread(worklist.exists)
        resumed = left and await saver.aget_tuple(config) is not None
        if not resumed:
            await saver.adelete_thread(thread)
        async for told in compiled.astream(
            None if resumed else IngestInput(roots=roots, worklist=str(worklist)),
            config,
            context=context,
            stream_mode="custom",
            durability="sync",
        ):
            board.show(told)
        state = IngestState(**(await compiled.aget_state(config)).values)
        await saver.adelete_thread(thread)
    return _report(state, resumed, await asyncio.to_thread(take_passed_over, worklist))


def _report(state: IngestState, resumed: bool, passed_over: list[str]) -> IngestReport:
    again = ["Went on with an interrupted ingest; run it once more to read what was added or changed since it began."]
    return IngestReport(
        added=state.added,
        updated=state.updated,
        unchanged=state.unchanged,
        failed=state.failed,
        passages=state.passages,
        resumed=resumed,
        warnings=[*(again if resumed else []), *state.warnings],
        passed_over=passed_over,
    )


@asynccontextmanager
async def _checkpoints(folder: Path) -> AsyncIterator[BaseCheckpointSaver[str]]:
    """Checkpoints of ingests stay on this machine, as the files that they read do."""
    try:
        await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
        async with SqliteCheckpoints.open(folder / "checkpoints.db", CheckpointSerializer()) as saver:
            yield saver
    except (sqlite3.DatabaseError, StoreDamaged) as error:
        reason = getattr(error, "reason", f"{error}.")
        raise StoreError(
            f"The ingest's checkpoints in {folder} cannot be used: {reason} Check the disk's free space. "
            "Delete that folder and the ingest begins anew; what is stored is skipped."
        ) from error
