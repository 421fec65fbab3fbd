"""Child processes that need not import what takes seconds: they are forked from a server that has."""

import multiprocessing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from sleuth.studio.cli.app import COMMANDS

FORKS = multiprocessing.get_context("forkserver")
_commands = {
    f"sleuth.studio.cli.commands.{where.rpartition(':')[2].partition('.')[0]}" for where, _ in COMMANDS.values()
}
# What is imported here, a child need not import. (The other modules of this folder are not on the fork server's path.)
FORKS.set_forkserver_preload(
    [
        *_commands,
        "sleuth.studio.cli.app",
        "sleuth.studio.server.app",
        "chromadb",
        "tantivy",
        "httpx2",
        "langgraph.checkpoint.postgres.aio",
    ]
)


@contextmanager
def child(target: Callable[..., None], argument: object) -> Iterator[tuple[BaseProcess, Connection]]:
    """Call a function with an argument and a pipe, in a process that is killed at the end of the block."""
    here, there = FORKS.Pipe()
    process = FORKS.Process(target=target, args=(argument, there))
    process.start()
    there.close()
    try:
        yield process, here
    finally:
        process.kill()
        process.join()
        process.close()
        here.close()
