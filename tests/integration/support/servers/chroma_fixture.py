"""A Chroma server of our own for the whole session."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from process import free_port


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
        port = free_port()
        program = str(Path(sys.executable).with_name("chroma"))
        self._command = [program, "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"http://127.0.0.1:{port}"

    def start(self) -> None:
        """Waits until it answers."""
        self._folder.mkdir(exist_ok=True)
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(self._command, stdout=quiet, stderr=quiet, cwd=self._folder)
        for _ in range(600):
            assert self._process.poll() is None, "the Chroma server ended"
            with suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/api/v2/heartbeat").is_success:
                    return
            time.sleep(0.1)
        pytest.fail("the Chroma server does not answer")

    def stop(self) -> None:
        """Ends it, and waits until it has."""
        if self._process:
            self._process.terminate()
            self._process.wait()
            self._process = None

    def forget(self) -> None:
        """Removes what it has; it must not run."""
        shutil.rmtree(self._folder)
