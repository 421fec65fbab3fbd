"""A Chroma server of our own for the whole session."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from process import answers, free_port, running


@pytest.fixture(scope="session")
def chroma_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A URL as in SLEUTH_CHROMA_URL."""
    server = ChromaServer(tmp_path_factory.mktemp("chroma"))
    server.start()
    yield server.url
    server.stop()


@pytest.fixture
def own_chroma(tmp_path: Path) -> Iterator["ChromaServer"]:
    """A server that one test may stop and start again."""
    server = ChromaServer(tmp_path / "chroma-server")
    server.start()
    yield server
    server.stop()


class ChromaServer:
    """A server over a folder, always at the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = str(free_port())
        self._running = ExitStack()
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Waits until it answers."""
        self._folder.mkdir(exist_ok=True)
        program, log = Path(sys.executable).with_name("chroma"), self._folder.with_suffix(".log")
        command = [program, "run", "--path", self._folder, "--host", "127.0.0.1", "--port", self._port]
        is_up = partial(answers, f"{self.url}/api/v2/heartbeat")
        self._running.enter_context(running(command, log, is_up=is_up, folder=self._folder))

    def stop(self) -> None:
        """Ends it, and waits until it has."""
        self._running.close()

    def forget(self) -> None:
        """Removes what it has; it must not run."""
        shutil.rmtree(self._folder)
