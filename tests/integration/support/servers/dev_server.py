"""LangGraph's development server as a process of its own."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from process import answers, free_port, running
from serve_process import Served

CONFIG = Path(__file__).parents[4] / "langgraph.json"
COMMAND = [Path(sys.executable).parent / "langgraph", "dev", "--config", CONFIG, "--no-browser", "--no-reload"]


@contextmanager
def langgraph_dev(folder: Path, **environment: str) -> Iterator[Served]:
    """Starts the server in a folder of its own, where it keeps its threads, and interrupts it at the end."""
    port, log = free_port(), folder / "server.log"
    quiet = {
        "LANGGRAPH_CLI_NO_ANALYTICS": "1",
        "LANGGRAPH_NO_VERSION_CHECK": "1",
        "HF_HUB_OFFLINE": "1",
        "NO_COLOR": "1",
    }
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LANG", "SLEUTH_"))}
    url, command, settings = f"http://127.0.0.1:{port}", [*COMMAND, "--port", str(port)], kept | quiet | environment
    is_up = partial(answers, f"{url}/ok")
    with running(command, log, is_up=is_up, folder=folder, environment=settings, end=signal.SIGINT) as process:
        yield Served(process, url, log)
