"""`sleuth serve` as a process of its own, to be killed and started again."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from process import SLEUTH, answers, free_port, running

COMMAND = [*SLEUTH, "serve", "--verbose"]


@dataclass(frozen=True)
class Served:
    """A server that is up."""

    process: "subprocess.Popen[bytes]"
    url: str
    log: Path

    def kill(self) -> None:
        """As by `kill -9`."""
        self.process.kill()
        self.process.wait()


@asynccontextmanager
async def sleuth_serve(folder: Path, **environment: str) -> AsyncIterator[Served]:
    """Starts the command in a folder, at a port that is free; ends it with a signal, if it has not ended."""
    port, log = free_port(), folder / "serve.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
    url, command = f"http://127.0.0.1:{port}", [*COMMAND, "--port", str(port)]
    server = running(
        command, log, is_up=partial(answers, f"{url}/livez"), folder=folder, environment=kept | environment
    )
    process = await asyncio.to_thread(server.__enter__)
    try:
        yield Served(process, url, log)
    finally:
        await asyncio.to_thread(server.__exit__, None, None, None)
