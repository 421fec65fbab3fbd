"""Reading of runs: their graph, their states, and the answers of those that have ended."""

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from sleuth.graphs.core.answer import Answer, Verdict, public_notes, subruns_in, total_cost
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.core.state import SCHEMA_VERSION
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.persistence.thread import Thread
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.execution import RECURSION_LIMIT, Compiled, checkpoint_id_of, compile_method, seconds_at
from sleuth.graphs.runs.turns import is_unfinished, pending_interrupt
from sleuth.tools.errors import RunError, StoreTooNew, UnknownName
from sleuth.tools.langgraph_internals import advance_clock
from sleuth.tools.storage.id_prefix import MAX_SIMILAR


class RunReader:
    """Reader of the runs of one store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def graph(self, thread: Thread) -> Compiled:
        """Return the compiled graph of a thread's method with this store's checkpointer."""
        return compile_method(runnable(thread.method).name, self.store.saver)

    def config(self, thread: Thread, checkpoint: str | None = None) -> RunnableConfig:
        """Return LangGraph's config of a thread, or of one of its checkpoints."""
        place = {"thread_id": thread.id, "checkpoint_ns": ""} | ({"checkpoint_id": checkpoint} if checkpoint else {})
        return {"configurable": place, "recursion_limit": RECURSION_LIMIT}

    async def state(self, thread: Thread, checkpoint: str | None = None) -> StateSnapshot:
        """Return the state of a thread's latest checkpoint, or of another one.

        Raises:
            UnknownName: the checkpoint does not exist.
            StoreTooNew: a newer release wrote it.
        """
        graph = self.graph(thread)
        state = await graph.aget_state(self.config(thread, checkpoint))
        if checkpoint and state.created_at is None:  # LangGraph returns an empty state for an unknown checkpoint
            latest = graph.aget_state_history(self.config(thread), limit=MAX_SIMILAR)
            raise unknown_checkpoint(checkpoint, [checkpoint_id_of(other) async for other in latest])
        return accept_state(state)

    async def history(self, thread: Thread) -> list[StateSnapshot]:
        """Return the states of all checkpoints of a thread and of all its branches, the newest first."""
        states = self.graph(thread).aget_state_history(self.config(thread))
        return [accept_state(state) async for state in states]

    async def answer(self, id: str) -> Answer:
        """Return the answer of a finished thread, or of a chat's latest turn; raise RunError while it has none."""
        return await self._answer(await self.store.threads.get(id))

    async def _answer(self, thread: Thread) -> Answer:
        kind, id, state = runnable(thread.method), thread.id, await self.state(thread)
        asks, verdict = pending_interrupt(state), state.values.get("verdict")
        if asks:
            from sleuth.graphs.core.approval import describe_request

            text = describe_request(asks) if "action_requests" in asks else str(asks["question"])
            verdict = Verdict(status="waiting", text=text, citations=[])
        if not verdict or (thread.method == CHAT and is_unfinished(thread, state)):
            raise RunError(f"Run {id} is {thread.state} and has no answer yet: `sleuth resume {id}` resumes it.")
        return Answer(
            thread=id,
            checkpoint=checkpoint_id_of(state),
            method=thread.method,
            question=state.values["question"],
            status=verdict["status"],
            text=verdict["text"],
            citations=verdict["citations"],
            notes=public_notes(state.values["notes"]),
            cost=total_cost(state.values["calls"]),
            seconds=seconds_at(state),
            warnings=[*thread.options.pages.warnings, *state.values["warnings"]],
            graph=kind.read_graph(state.values),
            threshold=state.values.get("threshold"),
            support=verdict.get("support"),
            hops=subruns_in(state.values),
            table=kind.read_table(state.values),
            ask_all=verdict.get("ask_all"),
            asks=asks,
            turn=thread.options.turn.id if thread.method == CHAT and thread.options.turn else None,
        )


def accept_state(state: StateSnapshot) -> StateSnapshot:
    """Return the state. Raise StoreTooNew if a newer release wrote it. New checkpoints get later ids than this one."""
    advance_clock(checkpoint_id_of(state))
    version = int((state.values or {}).get("schema_version", 1))  # the first layout has no field for it
    if version > SCHEMA_VERSION:
        raise StoreTooNew(
            f"This checkpoint was written by a newer release (state version {version}, this release reads up to "
            f"{SCHEMA_VERSION}): upgrade sleuth to resume it."
        )
    return state


def unknown_checkpoint(id: str, others: list[str]) -> UnknownName:
    """Return the error for a checkpoint that a thread does not have."""
    return UnknownName("checkpoint", id, others, "`sleuth runs history` shows them, by id, step and node.")
