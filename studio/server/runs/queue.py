"""Which threads have a job, written down: a start after a kill, or after a shutdown, picks them up."""

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


class JobList:
    """The jobs of all servers over one store; whoever changes a thread's row holds its lease. Blocks.

    `token` is that of the lease. Where another server has taken the thread, ThreadBusy is raised.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def prepare(self) -> None:
        """Makes the table where it is missing."""
        make_tables(self._engine, metadata)

    def write_down(self, owner: str, thread: str, token: str | None) -> None:
        """A thread has a job."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            connection.execute(delete(jobs).where(jobs.c.thread == thread))
            connection.execute(insert(jobs).values(thread=thread, owner=owner))

    def cross_out(self, thread: str, token: str | None) -> None:
        """Its job has ended."""
        with transaction(self._engine, write=True) as connection:
            check_token(connection, thread, token)
            connection.execute(delete(jobs).where(jobs.c.thread == thread))

    def has(self, thread: str) -> bool:
        """Whether a thread has a job."""
        with transaction(self._engine) as connection:
            return connection.scalar(select(jobs.c.owner).where(jobs.c.thread == thread)) is not None

    def left(self) -> list[tuple[str, str]]:
        """Threads with a job, and their owners."""
        with transaction(self._engine) as connection:
            return [(row.thread, row.owner) for row in connection.execute(select(jobs))]
