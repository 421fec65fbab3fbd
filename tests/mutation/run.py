"""Alter the methods at random, and list what their tests do not notice: `make test-mutants`.

cosmic-ray proposes the changes: an operator, a number, a condition, a decorator. The tests of a module run in a process
that imports its altered text. A mutant is killed if one of them fails, or if they take too long. One with which the
tests cannot be collected does not count. Of 183 that count (seed 0), 155 were killed; tests that were written for the
others kill 17 more, and seven of the last eleven change nothing that a test could notice. Less than 85 % killed is an
error.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import SourceFileLoader
from itertools import islice
from pathlib import Path
from random import Random
from types import CodeType
from typing import NamedTuple

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
OPTIONS = ["-q", "-x", "--disable-socket", "--allow-unix-socket", "-m", "not sweep and not nightly"]
OPTIONS += [option for name in ("langsmith_plugin", "schemathesis", "cacheprovider") for option in ("-p", f"no:{name}")]
SECONDS = 900
"""Seconds after which a mutant's tests never end."""
KILLED = 0.85
"""The least share."""
SHARED = [f"tests/graphs/methods/test_{name}.py" for name in ("trajectories", "every_method")]
USERS_OF_EVIDENCE = ["tests/graphs/methods/test_par_rag.py"]
USERS_OF_EVIDENCE += [f"tests/graphs/baselines/test_{name}.py" for name in ("plain_rag", "react")]
TESTS = {
    "graphs/methods/auto": "tests/graphs/methods/test_auto.py",
    "graphs/methods/crp_rag": "tests/graphs/methods/test_crp_*.py",
    "graphs/methods/hybrid_rag": "tests/graphs/methods/test_hybrid_*.py",
    "graphs/methods/par_rag": "tests/graphs/methods/test_par_*.py",
    "graphs/methods/ras": "tests/graphs/methods/test_ras*.py",
    "graphs/methods/retro_rag": "tests/graphs/methods/test_retro_*.py",
    "graphs/methods/search_trained": "tests/graphs/methods/test_search_*.py",
    "graphs/evidence": "tests/graphs/evidence/test_*.py",
}
"""The tests of each folder; those of all methods run after them."""


class Mutant(NamedTuple):
    """A changed module."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        before, changed = (text.splitlines()[self.line - 1].strip() for text in (self.path.read_text(), self.text))
        return f"{self.path.relative_to(ROOT)}:{self.line}: {before}  ->  {changed}"

    def test(self) -> int:
        """Run the tests of the module, and return pytest's exit code."""
        folder = self.path.parent.relative_to(ROOT)
        tests = sorted(map(str, ROOT.glob(TESTS[str(folder)])))
        if folder.name == "evidence":
            tests += [*USERS_OF_EVIDENCE, *SHARED]
        else:
            names = f"{folder.name} or {folder.name.replace('_', '-')} or {Path(tests[0]).stem[:8]}"
            tests += [*SHARED, "-k", names]
        command = [sys.executable, __file__, "--module", str(self.path), *tests]
        try:
            return subprocess.run(
                command, input=self.text, text=True, capture_output=True, timeout=SECONDS, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            return pytest.ExitCode.TESTS_FAILED


def mutants(folders: Iterable[str], seed: int) -> Iterable[Mutant]:
    """Yield mutants of the folders' modules in random order: of each place one, by a random operator."""
    random = Random(seed)
    operators = [get_operator(name)() for name in operator_names() if not get_operator(name).arguments()]
    places: dict[tuple[Path, tuple[int, int]], list[tuple[object, int]]] = {}
    for path in sorted(path for folder in folders for path in (ROOT / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        nodes, lines = list(ast_nodes(get_ast(text))), text.splitlines()
        for operator in operators:
            starts = [start for node in nodes for start, _ in operator.mutation_positions(node)]
            for occurrence, start in enumerate(starts):
                if not lines[start[0] - 1].startswith("@dataclass"):  # which prevents mistakes, and has no effect
                    places.setdefault((path, start), []).append((operator, occurrence))
    for path, (line, column) in random.sample(sorted(places), len(places)):
        text = mutate_code(path.read_text(encoding="utf-8"), *random.choice(places[path, (line, column)]))
        yield Mutant(path, line, text)


def run_tests(module: Path, text: str, arguments: list[str]) -> int:
    """Run tests with another text of a module."""
    own_code = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        is_changed = Path(loader.path).resolve() == module
        return compile(text, loader.path, "exec") if is_changed else own_code(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    os.chdir(ROOT)
    return pytest.main([*OPTIONS, *arguments])


def main() -> int:
    """Test the mutants and print those that survive; return 1 if they are too many."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=list(TESTS))
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    for folder in options.folders:
        path = min((ROOT / folder).glob("*.py"))
        if Mutant(path, 1, path.read_text(encoding="utf-8")).test():
            sys.exit(f"The tests of {folder} fail without a mutant.")
    survived = killed = 0
    chosen = list(islice(mutants(options.folders, options.seed), options.number))
    with ThreadPoolExecutor(options.jobs) as pool:
        for mutant, code in zip(chosen, pool.map(Mutant.test, chosen), strict=True):
            if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
                survived, killed = survived + (not code), killed + bool(code)
                sys.stdout.write(f"{'killed  ' if code else 'SURVIVED'}  {mutant}\n")
                sys.stdout.flush()
    sys.stdout.write(f"{survived + killed} mutants, {killed} killed, {survived} survived\n")
    return killed < KILLED * (survived + killed)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--module"]:
        sys.exit(run_tests(Path(sys.argv[2]), sys.stdin.read(), sys.argv[3:]))
    sys.exit(main())
