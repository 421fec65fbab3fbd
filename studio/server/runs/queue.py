"""Queue of the runs that all servers of a store have to finish, and the requests to stop them."""

from collections.abc import Collection

from sqlalchemy import Column, MetaData, String, Table, delete, insert, select
from sqlalchemy.engine import Engine

from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.persistence.thread_locks import check_token
from sleuth.tools.storage import in_thread, make_tables, transaction

metadata = MetaData()
jobs = Table(
    "sleuth_serve_jobs",
    metadata,
    Column("thread", String(LONGEST_NAME), primary_key=True),
    Column("owner", String(100), nullable=False),
)
stops = Table("sleuth_serve_stops", metadata, Column("thread", String(LONGEST_NAME), primary_key=True))


class RunQueue:
    """Jobs of all servers that share a store.

    A thread's row is changed only under its thread lock, whose fencing token is `token`. The methods raise ThreadBusy
    if another server has locked the thread since.
    """

    def __init__(self, engine: Engine) -> None:
        """Create the tables if they are missing; blocks."""
        self._engine = engine
        make_tables(engine, metadata)

    @in_thread
    def add(self, owner: str, thread: str, token: str | None, *, is_recovered: bool = False) -> None:
        """Add a thread; a request to stop it stays valid only if its run is recovered."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            connection.execute(delete(jobs).where(jobs.c.thread == thread))
            connection.execute(insert(jobs).values(thread=thread, owner=owner))
            if not is_recovered:
                connection.execute(delete(stops).where(stops.c.thread == thread))

    @in_thread
    def remove(self, thread: str, token: str | None) -> None:
        """Remove a thread whose job has ended."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            connection.execute(delete(jobs).where(jobs.c.thread == thread))
            connection.execute(delete(stops).where(stops.c.thread == thread))

    @in_thread
    def request_stop(self, thread: str) -> bool:
        """Ask the server that runs a thread to stop it; return False if it has no job."""
        with transaction(self._engine, write=True) as connection:
            if connection.scalar(select(jobs.c.owner).where(jobs.c.thread == thread)) is None:
                return False
            connection.execute(delete(stops).where(stops.c.thread == thread))
            connection.execute(insert(stops).values(thread=thread))
            return True

    @in_thread
    def requested_stops(self, threads: Collection[str]) -> list[str]:
        """Return those of the threads that a server was asked to stop."""
        with transaction(self._engine) as connection:
            return [*set(connection.scalars(select(stops.c.thread))).intersection(threads)]

    @in_thread
    def contains(self, thread: str) -> bool:
        """Return whether a thread has a job."""
        with transaction(self._engine) as connection:
            return connection.scalar(select(jobs.c.owner).where(jobs.c.thread == thread)) is not None

    @in_thread
    def pending(self) -> list[tuple[str, str]]:
        """Return the threads with a job, with their owners."""
        with transaction(self._engine) as connection:
            return [(row.thread, row.owner) for row in connection.execute(select(jobs))]
