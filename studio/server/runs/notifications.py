"""Postgres notifications between the servers of one store; with SQLite there are none, and servers look regularly."""

from collections.abc import AsyncGenerator

from sqlalchemy import Connection, func, select
from sqlalchemy.engine import Engine

from sleuth.tools.optional_imports import extra

EVENTS, STOPS = "sleuth_events", "sleuth_stops"
"""Channels: a thread has new events or has ended, somebody asks to stop it. The payload is the thread."""


def notify(connection: Connection, channel: str, thread: str) -> None:
    """Notify all servers when the transaction commits; do nothing without Postgres."""
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_notify(channel, thread)))


async def listen(engine: Engine) -> AsyncGenerator[tuple[str, str]]:
    """Yield the channel and thread of notifications over a connection of its own; first an empty pair.

    Raises:
        psycopg.Error: the connection cannot be opened or is lost.
    """
    with extra("postgres", "Postgres"):
        import psycopg

    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for channel in (EVENTS, STOPS):
            await connection.execute(f"LISTEN {channel}".encode())
        yield "", ""
        async for notification in connection.notifies():
            yield notification.channel, notification.payload
