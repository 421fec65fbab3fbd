"""Storage of runs: checkpointers, threads, thread locks and the checkpoint serializer."""

from sleuth.graphs.persistence.serializer import CheckpointSerializer
from sleuth.graphs.persistence.sqlite_checkpoints import SqliteCheckpoints
from sleuth.graphs.persistence.store import Store, open_store, runs_url
from sleuth.graphs.persistence.tables import LONGEST_NAME, MAX_ANSWER
from sleuth.graphs.persistence.thread import (
    NAME,
    OUTCOMES,
    FollowUp,
    Origin,
    Outcome,
    RunResult,
    StoredOptions,
    StoredPages,
    Thread,
    ThreadState,
    ThreadStatus,
    Turn,
)
from sleuth.graphs.persistence.thread_locks import ThreadLocks, check_token
from sleuth.graphs.persistence.threads import RunFilter, Threads

__all__ = [
    "LONGEST_NAME",
    "MAX_ANSWER",
    "NAME",
    "OUTCOMES",
    "CheckpointSerializer",
    "FollowUp",
    "Origin",
    "Outcome",
    "RunFilter",
    "RunResult",
    "SqliteCheckpoints",
    "Store",
    "StoredOptions",
    "StoredPages",
    "Thread",
    "ThreadLocks",
    "ThreadState",
    "ThreadStatus",
    "Threads",
    "Turn",
    "check_token",
    "open_store",
    "runs_url",
]
