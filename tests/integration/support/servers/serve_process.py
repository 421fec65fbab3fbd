"""`sleuth serve` and LangGraph's development server as processes of their own, to be killed and started again."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from process import SLEUTH, answers, free_port, running_beside

COMMAND = [*SLEUTH, "serve", "--verbose"]
CONFIG = Path(__file__).parents[4] / "langgraph.json"
DEV = [Path(sys.executable).parent / "langgraph", "dev", "--config", CONFIG, "--no-browser", "--no-reload"]
QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "1",
    "HF_HUB_OFFLINE": "1",
    "NO_COLOR": "1",
}


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
    is_up = partial(answers, f"{url}/livez")
    async with running_beside(command, log, is_up=is_up, folder=folder, environment=kept | environment) as process:
        yield Served(process, url, log)


@asynccontextmanager
async def langgraph_dev(folder: Path, **environment: str) -> AsyncIterator[Served]:
    """Starts the server in a folder of its own, where it keeps its threads, and interrupts it at the end."""
    port, log = free_port(), folder / "server.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANG", "SLEUTH_"))}
    url, command, settings = f"http://127.0.0.1:{port}", [*DEV, "--port", str(port)], kept | QUIET | environment
    options = {"is_up": partial(answers, f"{url}/ok"), "end": signal.SIGINT}
    async with running_beside(command, log, folder=folder, environment=settings, **options) as process:
        yield Served(process, url, log)


LANGGRAPH_SERVERS = {"langgraph dev": (langgraph_dev, ""), "sleuth serve": (sleuth_serve, "/langgraph")}
"""Servers with LangGraph's routes, which are below a path."""
