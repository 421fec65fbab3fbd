"""The wheel as somebody else's: built here, installed into an environment of its own, used by an ordinary user.

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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from four_hops import QUESTION, four_hops
from recording_proxy import proxying
from scripted_backend import Scripted

from sleuth.studio.model_server.adapter import fingerprint

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.name != "posix", reason="users and modes of files are those of Unix"),
]

ROOT = Path(__file__).parents[3]
NOBODY = 65_534


@dataclass(frozen=True)
class User:
    """A user who runs commands: the prefix of the commands and the user id."""

    before: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    def may_not_write(self, folder: Path) -> bool:
        """Return whether the user can run this Python but cannot create a file in a folder."""
        script = "import sys\ntry: open(sys.argv[1], 'x')\nexcept PermissionError: print('refused')"
        command = [*self.before, sys.executable, "-c", script, str(folder / "written")]
        try:
            done = subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, **self.options)
        except OSError:  # no such command, or one that the user may not run
            return False
        (folder / "written").unlink(missing_ok=True)
        return done.stdout.strip() == "refused"


ORDINARY = User()
OTHERS = (
    User(options={"user": NOBODY, "group": NOBODY, "extra_groups": []}),
    User(before=("setpriv", "--bounding-set=-all", "--inh-caps=-all")),
)
"""Users to try instead of root: `nobody`, or root without the capabilities that allow writing everywhere."""


@dataclass(frozen=True)
class Installed:
    """An environment with the wheel that is read-only, and a folder that its user may write to."""

    folder: Path
    packages: Path
    user: User

    def sleuth(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """`sleuth ARGUMENTS` as the user, in the user's folder, without anything of this checkout's environment."""
        own = {"PATH": os.environ["PATH"], "HOME": str(self.home), "SLEUTH_HOME": str(self.home / "sleuth")}
        return run([str(self.folder / "venv" / "bin" / "sleuth"), *arguments], self, own | environment)

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def files(self) -> set[str]:
        return {str(path) for path in self.packages.rglob("*") if "__pycache__" not in path.parts}


def run(command: Sequence[str], at: Installed, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*at.user.before, *command],
        **{"cwd": at.home, "env": environment, "timeout": 600, **at.user.options},
        capture_output=True,
        text=True,
        check=False,
    )


def ordinary(packages: Path) -> User:
    """Return a user who can run this Python but cannot write to the packages; skip if there is none."""
    users = OTHERS if os.geteuid() == 0 else (ORDINARY,)
    found = next((user for user in users if user.may_not_write(packages)), None)
    return found or pytest.skip("this is root, whom neither setpriv nor another user's name keeps from writing")


@pytest.fixture(scope="module")
def installed() -> Iterator[Installed]:
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        yield install(folder)
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=False)
        shutil.rmtree(folder)


def install(folder: Path) -> Installed:
    """Build the wheel, install it without its dependencies, and remove all write permissions."""
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
    (folder / "home").chmod(0o777)
    subprocess.run(["chmod", "-R", "a-w", packages], check=True)
    return Installed(folder, packages, ordinary(packages))


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
    done = run([str(installed.folder / "venv" / "bin" / "python"), "-c", script], installed, {"HOME": "/"})
    assert done.stdout.startswith(str(installed.packages)), done.stderr


def test_wheel_contains_the_package_only(installed: Installed) -> None:
    files = [name for name in packed(installed.folder / "dist") if not name.startswith(("sleuth/", "sleuth_rag-"))]
    assert files == []


def test_packages_are_read_only(installed: Installed) -> None:
    assert installed.user.may_not_write(installed.packages)
    assert installed.user.may_not_write(installed.packages / "sleuth" / "prompts")
    assert not installed.user.may_not_write(installed.home)


def test_wheel_contains_the_adapter(installed: Installed) -> None:
    script = "import pathlib\nfrom sleuth.studio.model_server.adapter import fingerprint, resolve_adapters\n"
    script += "print(fingerprint(pathlib.Path(*resolve_adapters(None))))"
    done = run([str(installed.folder / "venv" / "bin" / "python"), "-c", script], installed, {"HOME": "/"})
    assert done.stdout.strip() == fingerprint(ROOT / "studio" / "model_server" / "sleuth-small"), done.stderr


@pytest.mark.nightly
async def test_wheel_ingests_and_answers_writing_only_to_its_home(installed: Installed) -> None:
    before = installed.files()
    without = {"SLEUTH_EMBEDDER": "none"}
    corpus = installed.folder / "corpus"
    shutil.copytree(ROOT / "examples" / "corpus", corpus)
    shutil.copy(ROOT / "examples" / "questions.jsonl", corpus.parent)
    assert "ingest" in installed.sleuth("--help").stdout
    read = installed.sleuth("ingest", str(corpus), **without)
    assert read.returncode == 0 and "89 added, 0 updated, 0 unchanged, 0 failed" in read.stdout, read.stderr
    found = installed.sleuth("search", "Pellowrig Light", "--mode", "graph", **without)
    assert found.returncode == 0 and "Pellowrig" in found.stdout, found.stderr
    asked = installed.sleuth(
        *("eval", str(installed.folder / "questions.jsonl"), "--methods", "plain-rag,par-rag", "--limit", "2"),
        *("--simulate", "drafter=0", "--out", "report"),
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


@pytest.mark.nightly
def test_ask_without_a_model_server_explains_the_fix(installed: Installed) -> None:
    url = {"SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": "http://127.0.0.1:9/v1"}
    done = installed.sleuth("ask", "Who built the light?", **url)
    assert done.returncode not in (0, 2)
    assert "Traceback" not in done.stderr and "model" in done.stderr
