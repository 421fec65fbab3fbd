"""LangGraph's development server as a process of its own, and its HTTP interface."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from process import answers, free_port, running

CONFIG = Path(__file__).parents[4] / "langgraph.json"
COMMAND = [Path(sys.executable).parent / "langgraph", "dev", "--config", CONFIG, "--no-browser", "--no-reload"]


class Server:
    """A running `langgraph dev`."""

    def __init__(self, url: str, log: Path, process: subprocess.Popen[bytes]) -> None:
        self.url = url
        self.log = log
        self.process = process
        self._http = httpx.Client(base_url=url, timeout=300, trust_env=False)

    def get(self, path: str) -> Any:
        return self._http.get(path).raise_for_status().json()

    def post(self, path: str, **body: Any) -> Any:
        return self._http.post(path, json=body).raise_for_status().json()

    def thread(self) -> str:
        return f"/threads/{self.post('/threads')['thread_id']}"

    def history(self, thread: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.get(f"{thread}/history?limit=200")
        return found

    def kill(self) -> None:
        """End it immediately, as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def close(self) -> None:
        self._http.close()


@contextmanager
def langgraph_dev(folder: Path, **environment: str) -> Iterator[Server]:
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
        server = Server(url, log, process)
        try:
            yield server
        finally:
            server.close()
