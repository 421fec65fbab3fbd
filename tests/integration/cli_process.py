"""The command line in processes of its own, forked from one that has imported everything: each starts in no time."""

import asyncio
import json
import multiprocessing
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sleuth.studio import cli

_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(
    ["sleuth.studio.cli", "chromadb", "tantivy", "langchain_openai", "langgraph.checkpoint.postgres.aio"]
)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """The one value on standard output; fails where there is more, or less."""
        return json.loads(self.out)


def _main(arguments: list[str], environment: dict[str, str], folder: str) -> None:
    os.environ.update(environment)
    for number, name in ((1, "out"), (2, "err")):
        with (Path(folder) / name).open("wb") as file:
            os.dup2(file.fileno(), number)
    sys.argv = ["sleuth", *arguments]
    cli.main()


def _run(arguments: list[str], environment: dict[str, str]) -> Done:
    with TemporaryDirectory() as folder:
        process = _server.Process(target=_main, args=(arguments, environment, folder))
        process.start()
        process.join(120)
        assert process.exitcode is not None, f"sleuth {arguments} does not end"
        out, err = ((Path(folder) / name).read_text(encoding="utf-8") for name in ("out", "err"))
        return Done(process.exitcode, out, err)


async def sleuth(*arguments: str, **environment: str) -> Done:
    """`sleuth ARGUMENTS` with these variables set."""
    return await asyncio.to_thread(_run, list(arguments), environment)
