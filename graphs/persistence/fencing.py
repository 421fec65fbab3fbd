"""Fencing tokens: who loses the lock of a thread can no longer write to that thread.

The holder of a lock in Postgres stores a token that nobody else has. Each of its writes checks, in the same
transaction, that the token is still there. Locks on files need no token: the operating system holds them as long as
the process lives.
"""

from collections.abc import Callable

from sqlalchemy import Column, Connection, MetaData, String, Table, Text, select

from sleuth.tools.errors import ThreadBusy

Fence = Callable[[str], str | None]
"""Return the token of a thread whose lock is held here; None where there is nothing to check."""

metadata = MetaData()
tokens = Table(
    "sleuth_leases",
    metadata,
    Column("thread", Text, primary_key=True),
    Column("token", String(32), nullable=False),
)


def unfenced(_thread: str) -> None:
    """Return no token: writes are not checked."""


def check(connection: Connection, thread: str, token: str | None) -> None:
    """Raise ThreadBusy if another process has taken a thread; until the transaction ends, none can take it."""
    if token is None:
        return
    row = select(tokens.c.token).where(tokens.c.thread == thread).with_for_update(read=True)
    if connection.scalar(row) != token:
        raise lost(thread)


def lost(thread: str) -> ThreadBusy:
    """Return the error for a thread whose lock was lost."""
    return ThreadBusy(
        f"Thread {thread} is being run by another process, which took it while the database was away. "
        "Wait until it ends, or stop it first."
    )
