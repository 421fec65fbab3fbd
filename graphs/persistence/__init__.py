"""Storage of runs: checkpointers, threads, thread locks and the checkpoint serializer."""

from sleuth.graphs.persistence.run_options import StoredOptions, StoredPages, Turn
from sleuth.graphs.persistence.serializer import FAULTS, CheckpointSerializer, explain_damage
from sleuth.graphs.persistence.sqlite_checkpoints import SqliteCheckpoints
from sleuth.graphs.persistence.store import Store, open_store, runs_url
from sleuth.graphs.persistence.thread_locks import ThreadLocks, check_token
from sleuth.graphs.persistence.thread_states import OUTCOMES, Outcome, RunResult, ThreadState, ThreadStatus
from sleuth.graphs.persistence.thread_tables import LONGEST_NAME, MAX_ANSWER, RunFilter
from sleuth.graphs.persistence.threads import NAME, Origin, Thread, Threads

__all__ = [
    "FAULTS",
    "LONGEST_NAME",
    "MAX_ANSWER",
    "NAME",
    "OUTCOMES",
    "CheckpointSerializer",
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
    "explain_damage",
    "open_store",
    "runs_url",
]
