"""agent-chat-ui, LangChain's chat page: built once, and served by Next.js.

SLEUTH_AGENT_CHAT_UI names its archive or the folder of its sources. It is built in .cache, which takes some minutes.
"""

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from pathlib import Path

import pytest
from process import answers, free_port, program, running

CACHE = Path(__file__).parents[4] / ".cache"
FONTS = (
    """module.exports = new Proxy({}, { get: () => "@font-face { font-family: 'Inter'; font-style: normal; }" });\n"""
)
"""A replacement of the fonts that the build would download from Google."""


@pytest.fixture(scope="session")
def agent_chat_ui() -> Path:
    """Return the folder of the built page; skips unless SLEUTH_AGENT_CHAT_UI is set, also in CI: the build is long."""
    given = os.environ.get("SLEUTH_AGENT_CHAT_UI")
    if not given:
        pytest.skip("SLEUTH_AGENT_CHAT_UI names no archive of agent-chat-ui")
    source = Path(given)
    program("npm is not installed: apt-get install npm", "npm")
    if (source / ".next" / "BUILD_ID").is_file():
        return source
    name = sha256(source.read_bytes() if source.is_file() else given.encode()).hexdigest()[:12]
    built = CACHE / f"agent-chat-ui-{name}"
    if not (built / ".next" / "BUILD_ID").is_file():
        _build(source, built)
    return built


def _build(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    if source.is_file():
        unpacked = target.with_suffix(".tmp")
        with tarfile.open(source) as archive:
            archive.extractall(unpacked, filter="data")
        (folder,) = unpacked.iterdir()
        folder.rename(target)
        unpacked.rmdir()
    else:
        shutil.copytree(source, target)
    fonts = target / "fonts.cjs"
    fonts.write_text(FONTS)
    environment = {"NEXT_TELEMETRY_DISABLED": "1", "NEXT_FONT_GOOGLE_MOCKED_RESPONSES": str(fonts), "CI": "1"}
    pnpm = ["npx", "--yes", "pnpm@10.5.1", "install", "--frozen-lockfile", "--ignore-scripts"]
    for command in (pnpm, ["npx", "next", "build"]):
        done = subprocess.run(
            command, cwd=target, env=os.environ | environment, capture_output=True, text=True, timeout=900, check=False
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"


@contextmanager
def chat_page(built: Path, log: Path, *, api: str) -> Iterator[str]:
    """Serve the page, whose proxy at /api sends requests to `api`; yield its URL."""
    port = free_port()
    command = ["node", "node_modules/next/dist/bin/next", "start", "--port", str(port)]
    environment = os.environ | {"LANGGRAPH_API_URL": api, "LANGSMITH_API_KEY": "", "NEXT_TELEMETRY_DISABLED": "1"}
    url = f"http://localhost:{port}"
    with running(command, log, is_up=partial(answers, url), folder=built, environment=environment):
        yield url
