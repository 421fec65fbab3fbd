"""A server that cannot start prints the reason and the fix in one line and releases its resources."""

import os
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from process import free_port
from serve_process import COMMAND, sleuth_serve


def refused(*options: str, **environment: str) -> tuple[int, str]:
    """Run the command; return its exit status and its message."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
    run = subprocess.run(
        [*COMMAND, *options], check=False, env=kept | environment, capture_output=True, text=True, timeout=120
    )
    assert "Traceback" not in run.stderr
    assert "Ctrl-C to stop" not in run.stderr
    return run.returncode, "\n".join(line for line in run.stderr.splitlines() if not line.startswith("{"))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("home", "options", "environment", "expected"),
    [
        ("file", (), {}, (1, "cannot be created")),
        (".", (), {}, (1, "runs.sqlite cannot be read or written")),
        ("home", (), {"SLEUTH_DATABASE_URL": "postgresql://nobody@127.0.0.1:9/none"}, (1, "Connection refused")),
        ("home", ("--host", "nowhere.invalid"), {"SLEUTH_API_KEYS": "anna:apple-secret"}, (2, "nowhere.invalid")),
    ],
)
def test_serve_that_cannot_start_explains_the_error(
    tmp_path: Path, home: str, options: tuple[str, ...], environment: dict[str, str], expected: tuple[int, str]
) -> None:
    (tmp_path / "file").write_text("no folder")
    (tmp_path / "runs.sqlite").write_bytes(b"no database" * 1_000)
    own = {"SLEUTH_HOME": str(tmp_path / home), **environment}
    status, line = refused("--port", str(free_port()), *options, **own)
    assert (status, expected[1] in line) == (expected[0], True), line


def test_serve_with_used_port_explains_the_error(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        status, line = refused("--port", str(port), SLEUTH_HOME=str(tmp_path / "home"))
    assert status == 2
    assert f"Port {port} at 127.0.0.1" in line and "--port" in line
    assert not (tmp_path / "home").exists(), "looked at the port first"


@pytest.mark.nightly
async def test_serve_prints_its_address_when_ready(tmp_path: Path) -> None:
    async with sleuth_serve(tmp_path, SLEUTH_HOME=str(tmp_path / "home"), SLEUTH_EMBEDDER="none") as served:
        assert f"{served.url} (Ctrl-C to stop)" in served.log.read_text()
    said = served.log.read_text()
    assert "Finished server process" in said
    assert "Traceback" not in said
