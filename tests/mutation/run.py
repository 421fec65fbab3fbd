"""Run the mutants: `python tests/mutation/run.py [PACKAGE ...]`, or `make test-mutants` for all.

A mutant replaces one text of one file in a copy of the checkout and runs the tests that its entry names. It is killed
if a test fails. Before that, the same tests must pass on the unchanged copy.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from queue import Queue

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
OPTIONS = ["-q", "-x", "--disable-socket", "--allow-unix-socket", "-p", "no:langsmith_plugin", "-p", "no:schemathesis"]
SECONDS = 300


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One change to a file that tests must notice; `part` is the key of the part of the paper that it breaks."""

    package: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    part: str = ""

    def apply(self, text: str) -> str:
        """Return the file's text with the change.

        Raises:
            ValueError: the text to replace is not in the file exactly once.
        """
        if text.count(self.old) != 1 or self.old == self.new:
            raise ValueError(f"{self.package}: {self.old!r} is {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


def load(packages: Iterable[str] = ()) -> list[Mutant]:
    """Return the mutants of these packages, or of all."""
    names = list(packages) or sorted(path.stem for path in HERE.glob("*.toml"))
    return [
        Mutant(package=name, **entry | {"tests": tuple(entry["tests"])})
        for name in names
        for entry in tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))["mutant"]
    ]


class Copies:
    """Copies of the checkout in which mutants are tested, one at a time each."""

    def __init__(self, folder: Path, number: int) -> None:
        self._free: Queue[Path] = Queue()
        self._times = count(1)
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
        for at in range(number):
            copy = folder / str(at)
            for name in filter(None, names):
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                if (ROOT / name).is_symlink() or (ROOT / name).exists():
                    shutil.copy2(ROOT / name, copy / name, follow_symlinks=False)
            self._free.put(copy)

    @contextmanager
    def one(self) -> Iterator[Path]:
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)

    def write(self, path: Path, text: str) -> None:
        """Write a file with a time of its own, so that Python compiles it again."""
        path.write_text(text, encoding="utf-8")
        os.utime(path, (next(self._times),) * 2)


def passes(copy: Path, tests: Sequence[str]) -> bool:
    """Return whether these tests pass in a copy of the checkout; a run without an end counts as failed.

    Raises:
        RuntimeError: pytest could not run them; the message has its output.
    """
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONPYCACHEPREFIX": str(copy / ".cache" / "pyc")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", *OPTIONS, *tests]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    if done.returncode > 1:
        raise RuntimeError(f"{' '.join(tests)}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}")
    return done.returncode == 0


def survives(copies: Copies, mutant: Mutant) -> bool:
    """Return whether the mutant's tests pass although the code is changed."""
    with copies.one() as copy:
        path = copy / mutant.file
        text = path.read_text(encoding="utf-8")
        copies.write(path, mutant.apply(text))
        try:
            return passes(copy, mutant.tests)
        finally:
            copies.write(path, text)


def main() -> int:
    """Run the mutants and print those that survive; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("packages", nargs="*")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    mutants = load(options.packages)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies = Copies(Path(folder), options.jobs)

        def check(tests: tuple[str, ...]) -> bool:
            with copies.one() as copy:
                return passes(copy, tests)

        selections = sorted({mutant.tests for mutant in mutants})
        for tests, passed in zip(selections, pool.map(check, selections), strict=True):
            if not passed:
                sys.exit(f"These tests fail without a mutant: {' '.join(tests)}")
        survivors = 0
        for mutant, survived in zip(mutants, pool.map(lambda each: survives(copies, each), mutants), strict=True):
            survivors += survived
            what = f"{mutant.package}: {mutant.part or mutant.file}: {mutant.old!r} -> {mutant.new!r}"
            sys.stdout.write(f"{'SURVIVED' if survived else 'killed'}  {what}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(mutants)} mutants, {len(mutants) - survivors} killed, {survivors} survived\n")
    return survivors > 0


if __name__ == "__main__":
    sys.exit(main())
