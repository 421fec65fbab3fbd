"""The stored queue of threads with a job: the next start resumes them after a kill or a shutdown."""

from sqlalchemy import Column, MetaData, String, Table, delete, insert, select
from sqlalchemy.engine import Engine

from sleuth.graphs.persistence import LONGEST_NAME, check_token
from sleuth.tools.storage import make_tables, transaction

metadata = MetaData()
jobs = Table(
    "sleuth_serve_jobs",
    metadata,
    Column("thread", String(LONGEST_NAME), primary_key=True),
    Column("owner", String(100), nullable=False),
)


class RunQueue:
    """Jobs of all servers that share a store. All methods block.

    A thread's row is changed only under its thread lock, whose fencing token is `token`. The methods raise ThreadBusy
    if another server has locked the thread since.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def prepare(self) -> None:
        """Create the table if it is missing."""
        make_tables(self._engine, metadata)

    def add(self, owner: str, thread: str, token: str | None) -> None:
        """Add a thread."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            connection.execute(delete(jobs).where(jobs.c.thread == thread))
            connection.execute(insert(jobs).values(thread=thread, owner=owner))

    def remove(self, thread: str, token: str | None) -> None:
        """Remove a thread whose job has ended."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            connection.execute(delete(jobs).where(jobs.c.thread == thread))

    def contains(self, thread: str) -> bool:
        """Return whether a thread has a job."""
        with transaction(self._engine) as connection:
            return connection.scalar(select(jobs.c.owner).where(jobs.c.thread == thread)) is not None

    def pending(self) -> list[tuple[str, str]]:
        """Return the threads with a job, with their owners."""
        with transaction(self._engine) as connection:
            return [(row.thread, row.owner) for row in connection.execute(select(jobs))]
