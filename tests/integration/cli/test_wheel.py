"""The wheel as somebody else's: built here, installed into an environment of its own.

The packages that it needs come from the environment of the tests by one path, so that nothing is downloaded.
`tests/test_packaging.py` compares the requirements with what the code imports.
"""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from four_hops import QUESTION, four_hops
from scripted_backend import Scripted, proxying

from sleuth.studio.model_server.adapter import fingerprint

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel, and a home."""

    folder: Path
    packages: Path

    def sleuth(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`sleuth ARGUMENTS` in the home, without anything of this checkout's environment."""
        return self.run("sleuth", *arguments, SLEUTH_HOME=str(self.home / "sleuth"), **environment)

    def run(self, program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), **environment}
        command = [str(self.folder / "venv" / "bin" / program), *arguments]
        return subprocess.run(command, cwd=self.home, env=own, timeout=600, capture_output=True, text=True, check=False)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def files(self) -> set[str]:
        return {str(path) for path in self.packages.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    with tempfile.TemporaryDirectory() as folder:
        yield install(Path(folder))


def install(folder: Path) -> Installed:
    """Build the wheel, and install it without its dependencies."""
    source = folder / "source"
    shutil.copytree(ROOT, source, symlinks=True, ignore=_left_out)
    call("build", "--no-isolation", "--outdir", str(folder / "dist"), str(source))
    call("hatchling", "build", "--target", "wheel", "--directory", str(folder / "direct"), cwd=source)
    (wheel,) = (folder / "dist").glob("*.whl")
    call("venv", "--without-pip", str(folder / "venv"))
    python = folder / "venv" / "bin" / "python"
    call("pip", "--python", str(python), "install", "--quiet", "--no-deps", "--no-index", str(wheel))
    (packages,) = (folder / "venv" / "lib").glob("python*/site-packages")
    (packages / "tests.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    (folder / "home").mkdir()
    return Installed(folder, packages)


def _left_out(_folder: str, names: list[str]) -> set[str]:
    """Names that a source archive of the repository does not have: environments, caches and Git's own files."""
    return {name for name in names if name in ("node_modules", "__pycache__") or name.startswith(".")} - {".gitignore"}


def call(module: str, *arguments: str, cwd: Path = ROOT) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], cwd=cwd, check=True, capture_output=True)


def packed(folder: Path) -> dict[str, bytes]:
    """Return the files of the only wheel in a folder."""
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


@pytest.mark.nightly
def test_wheel_from_the_source_distribution_equals_the_direct_one(installed: Installed) -> None:
    assert packed(installed.folder / "dist") == packed(installed.folder / "direct")


def test_wheel_description_has_no_relative_links(installed: Installed) -> None:
    (info,) = installed.packages.glob("sleuth_rag-*.dist-info")
    description = (info / "METADATA").read_text(encoding="utf-8").partition("\n\n")[2]
    assert description.startswith("# sleuth\n")
    assert "Architecture" in description
    assert [link for link in re.findall(r"\]\(([^)]*)\)", description) if "://" not in link] == []


def test_installed_wheel_runs_instead_of_the_checkout(installed: Installed) -> None:
    script = "import sleuth.studio.cli.app, sleuth; print(sleuth.__file__)"
    done = installed.run("python", "-c", script)
    assert done.stdout.startswith(str(installed.packages)), done.stderr


def test_wheel_contains_the_package_only(installed: Installed) -> None:
    files = [name for name in packed(installed.folder / "dist") if not name.startswith(("sleuth/", "sleuth_rag-"))]
    assert files == []


def test_wheel_contains_the_adapter(installed: Installed) -> None:
    script = "import pathlib\nfrom sleuth.studio.model_server.adapter import fingerprint, resolve_adapter\n"
    script += "print(fingerprint(pathlib.Path(resolve_adapter(None))))"
    done = installed.run("python", "-c", script)
    assert done.stdout.strip() == fingerprint(ROOT / "studio" / "model_server" / "tiny"), done.stderr


@pytest.mark.nightly
async def test_wheel_ingests_and_answers_writing_only_to_its_home(installed: Installed) -> None:
    before = installed.files()
    without = {"SLEUTH_EMBEDDER": "none"}
    corpus = installed.folder / "corpus"
    shutil.copytree(ROOT / "examples" / "corpus", corpus)
    shutil.copy(ROOT / "examples" / "questions.jsonl", corpus.parent)
    assert "ingest" in installed.sleuth("--help").stdout
    read = installed.sleuth("ingest", str(corpus), **without)
    assert read.returncode == 0 and "89 added, 0 updated, 0 unchanged: " in read.stdout, read.stderr
    found = installed.sleuth("search", "Pellowrig Light", "--mode", "graph", **without)
    assert found.returncode == 0 and "Pellowrig" in found.stdout, found.stderr
    asked = installed.sleuth(
        *("eval", str(installed.folder / "questions.jsonl"), "--retrieval", "keyword,graph"),
        *("--limit", "2", "--out", "report"),
        **without,
    )
    assert asked.returncode == 0, asked.stderr
    assert (installed.home / "report" / "report.json").is_file()
    async with proxying(Scripted(four_hops)) as proxy:
        answer = await asyncio.to_thread(
            installed.sleuth, "ask", QUESTION, "--method", "par-rag", "--json", SLEUTH_MODEL_URL=proxy.url, **without
        )
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["text"] == "the fair at Brindlecote"
    assert installed.files() == before
