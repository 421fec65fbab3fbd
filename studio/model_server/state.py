"""What is known about the embedded server between two commands: a small file below SLEUTH_HOME."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from sleuth.studio.model_server.flags import ServeOptions
from sleuth.studio.model_server.process import Process
from sleuth.tools.errors import StoreError


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerState:
    """What `serve` writes down for `status` and `stop`; `started` is in seconds since 1970."""

    process: Process
    options: ServeOptions
    started: float

    @property
    def url(self) -> str:
        """As in SLEUTH_MODEL_URL."""
        return f"http://127.0.0.1:{self.options.port}/v1"


@dataclass(frozen=True, slots=True)
class ServerFiles:
    """Where the server's files are."""

    home: Path

    @property
    def folder(self) -> Path:
        """Holds the others."""
        return self.home / "model-server"

    @property
    def state(self) -> Path:
        """Which process it is; absent while stopped."""
        return self.folder / "state.json"

    @property
    def log(self) -> Path:
        """What the server has printed since its last start."""
        return self.folder / "server.log"

    @property
    def lock(self) -> Path:
        """Held while one is being started."""
        return self.folder / "lock"

    def prepare(self) -> None:
        """Makes the folder."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be made ({error.strerror}). Set SLEUTH_HOME elsewhere.") from None

    def read(self) -> ServerState | None:
        """None while stopped."""
        if not self.state.is_file():
            return None
        data = json.loads(self.state.read_text())
        chosen = data["options"]
        options = ServeOptions(**chosen | {"adapters": tuple(chosen.get("adapters", ()))})
        process = Process(**data["process"])
        return ServerState(process=process, options=options, started=data["started"])

    def write(self, state: ServerState) -> None:
        """In one piece, so that nobody reads half of it."""
        fresh = self.state.with_suffix(".new")
        fresh.write_text(json.dumps(asdict(state)))
        fresh.replace(self.state)

    def last_lines(self, count: int = 5) -> str:
        """The end of the log, where a server that died says why."""
        if not self.log.is_file():
            return ""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join([line[:300] for line in lines if line.strip()][-count:])
