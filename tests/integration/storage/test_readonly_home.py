"""A SLEUTH_HOME that cannot be written: each command reports it in one line and changes nothing."""

import asyncio
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from four_hops import four_hops
from hashing_embedder import HashingEmbedder
from process import SLEUTH
from recording_proxy import proxying
from scripted_backend import Scripted

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.settings import Settings

# Root may write everywhere, unless it gives that up.
_POWERLESS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]


def freeze(home: Path) -> None:
    for path in [home, *home.rglob("*")]:
        path.chmod(path.stat().st_mode & ~(stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH))


def thaw(home: Path) -> None:
    home.chmod(0o755)
    for path in home.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)


def content(home: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in home.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "command",
    [
        "docs list",
        *(
            pytest.param(each, marks=pytest.mark.nightly)
            for each in ("ingest {file}", "ask Where?", "docs delete a.txt")
        ),
    ],
)
async def test_command_reports_a_read_only_home(tmp_path: Path, command: str) -> None:
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("root cannot be kept from writing without setpriv")
    home, file = tmp_path / "home", tmp_path / "a.txt"
    file.write_text("A stone bridge.", encoding="utf-8")
    settings = Settings(home=home, embedder="none")
    await ingest([file], settings=settings, embedder=HashingEmbedder())
    freeze(home)
    before = content(home)
    try:
        async with proxying(Scripted(four_hops)) as proxy:
            arguments = command.format(file=file).split()
            done = await asyncio.to_thread(sleuth, arguments, home, proxy.url)
        assert "Traceback" not in done.stderr, done.stderr
        assert done.returncode == (0 if command == "docs list" and "a.txt" in done.stdout else 1), done
        assert done.returncode == 0 or ("SLEUTH_HOME" in done.stderr and "written" in done.stderr), done.stderr
    finally:
        thaw(home)
    assert content(home) == before


def sleuth(command: list[str], home: Path, model_url: str) -> subprocess.CompletedProcess[str]:
    given = {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": model_url}
    prefix = _POWERLESS if os.geteuid() == 0 else []
    return subprocess.run(
        [*prefix, *SLEUTH, *command], env=os.environ | given, capture_output=True, text=True, check=False
    )
