"""The transcript in docs/quickstart.md, typed into a terminal: its commands print what it shows.

Times, scores and the compilation of the embedder differ between machines; everything else is compared line by line.
"""

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from process import free_port
from terminal import Terminal

from sleuth.studio.model_server import server
from sleuth.studio.model_server.adapter import resolve_adapter
from sleuth.studio.model_server.flags import ServeOptions

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "quickstart.md"
TRANSCRIPT = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HOME_ON_PAGE = "/Users/ada"
WITHOUT_MODEL = "--thread quick"
NO_SERVER = "http://127.0.0.1:9/v1"


def commands() -> list[tuple[str, str]]:
    """Return the commands of the page with their outputs."""
    text = "".join(TRANSCRIPT.findall(PAGE.read_text(encoding="utf-8")))
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, output) for command, _, output in (part.partition("\n") for part in parts)]


def lines(shown: str, home: Path) -> list[str]:
    """Return the lines without what differs between machines."""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.replace("\r", "")).replace(str(home), HOME_ON_PAGE)
    text = text.replace(NO_SERVER, "http://127.0.0.1:8000/v1")
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+", "TIME", re.sub(r"\d+\.\d+", "0.0", text))
    text = re.sub(r"\b[0-9a-f]{8}-[0-9a-f-]+", "ID", text)
    found = (re.sub(r"\s+", " ", line).strip() for line in text.split("\n"))
    return [line for line in found if line and not line.startswith("Compiling the embedding model")]


@pytest.fixture
def small_model(model_home: Path, vllm_installed: None) -> Iterator[str]:
    """The URL of `sleuth model serve --dtype float32`, on a free port."""
    options = ServeOptions(port=free_port(), dtype="float32", adapter=resolve_adapter(None))
    found = asyncio.run(server.serve(model_home, options, print))
    yield str(found.url)
    asyncio.run(server.stop(model_home))


@pytest.mark.faults  # some minutes where the server must start first
def test_quickstart_shows_what_its_commands_print(small_model: str, tmp_path: Path) -> None:
    compare([each for each in commands() if WITHOUT_MODEL not in each[0]], small_model, tmp_path)


def test_quickstart_needs_no_model_up_to_the_first_answer(tmp_path: Path) -> None:
    transcript = [each for each in commands() if "--method" not in each[0]]
    assert [command.split()[1] for command, _ in transcript] == ["ingest", "search", "ask"]
    compare(transcript, NO_SERVER, tmp_path)


def compare(transcript: list[tuple[str, str]], model_url: str, tmp_path: Path) -> None:
    """Run commands of the page over its folder, and compare what they print."""
    notes = tmp_path / "Documents" / "notes"
    shutil.copytree(ROOT / "examples" / "corpus", notes)
    (notes / "scan.pdf").write_bytes(b"%PDF-1.4 broken")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = {
        "HOME": str(tmp_path),
        "PATH": path,
        "TERM": "dumb",  # 80 columns
        "NO_COLOR": "1",
        "SLEUTH_HOME": str(tmp_path / "sleuth"),
        "SLEUTH_MODEL_URL": model_url,
    }
    assert transcript
    for command, output in transcript:
        terminal = Terminal(["bash", "-c", f"cd {tmp_path} && {command}"], environment)
        terminal.end()
        assert lines(terminal.shown, tmp_path) == lines(output, tmp_path), f"$ {command}\n{terminal.shown}"
