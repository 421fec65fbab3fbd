"""Servers of ours that tests start and stop."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar


class Server(Protocol):
    """Something that can be started, stopped, and started again."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


S = TypeVar("S", bound=Server)


@contextmanager
def running(server: S) -> Iterator[S]:
    """A server that runs as long as the block lasts, unless the block stops it."""
    server.start()
    try:
        yield server
    finally:
        server.stop()
