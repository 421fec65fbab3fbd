"""The embedded server's process, which outlives its starter, and its state in files below SLEUTH_HOME."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError
from pydantic_core import to_json

from sleuth.studio.model_server.flags import ServeOptions
from sleuth.tools.errors import StoreError
from sleuth.tools.settings import MODEL_SERVER_STATE, is_model_server_running


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelServerState:
    """State that `serve` stores for `status` and `stop`; `started` is in seconds since 1970."""

    pid: int
    options: ServeOptions
    started: float

    @property
    def url(self) -> str:
        """As in SLEUTH_MODEL_URL."""
        return f"http://127.0.0.1:{self.options.port}/v1"


class ServerFiles:
    """Files of the server: its state (absent while stopped), its log since the last start, and two locks.

    `lock` is that of a start; the server itself has locked `running` until it ends.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.state = home / MODEL_SERVER_STATE
        self.log, self.lock, self.running = (self.state.with_name(name) for name in ("server.log", "lock", "running"))

    def prepare(self) -> None:
        """Make the folder."""
        folder = self.state.parent
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{folder} cannot be made ({error.strerror}). Set SLEUTH_HOME elsewhere.") from None

    def is_running(self) -> bool:
        """Return whether the server's process runs."""
        return is_model_server_running(self.home)

    def read(self) -> ModelServerState | None:
        """Return the stored state; None while stopped."""
        if not self.state.is_file():
            return None
        try:
            return TypeAdapter(ModelServerState).validate_json(self.state.read_bytes())
        except ValidationError:  # of an earlier release
            return None

    def write(self, state: ModelServerState) -> None:
        """Write the state atomically."""
        fresh = self.state.with_suffix(".new")
        fresh.write_bytes(to_json(state))
        fresh.replace(self.state)

    def last_lines(self, count: int = 5) -> str:
        """Return the end of the log, which contains the reason if the server died."""
        if not self.log.is_file():
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([line[:300] for line in lines if line.strip()][-count:])


def end_leftovers(pid: int) -> None:
    """End the processes that a dead server has left, unless its number is that of another process by now."""
    with suppress(ChildProcessError):  # another process has started it
        os.waitpid(pid, os.WNOHANG)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    except PermissionError:
        return
