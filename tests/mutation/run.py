"""Alter the methods at random, and list what their tests do not notice: `make test-mutants`.

cosmic-ray proposes the changes: an operator, a number, a condition, a decorator. Each sampled change is made in a child
process when it imports the module, and the tests of that module run there. A mutant is killed if one of them fails, or
never ends. One with which the tests cannot be collected does not count. Of 200 (seed 0), 172 were killed, and ten of
the 28 others change nothing that a test could notice. Less than 85 % killed is an error.
"""

import argparse
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from io import StringIO
from pathlib import Path
from random import Random
from types import CodeType

import pytest
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

ROOT = Path(__file__).parents[2]
OPTIONS = ["-q", "-x", "--disable-socket", "--allow-unix-socket", "-m", "not sweep and not nightly"]
OPTIONS += [option for name in ("langsmith_plugin", "schemathesis", "cacheprovider") for option in ("-p", f"no:{name}")]
SECONDS = 300
"""Processor time after which a mutant's tests never end."""
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


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A changed module."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        changed = self.text.splitlines()[self.line - 1].strip()
        before = self.path.read_text(encoding="utf-8").splitlines()[self.line - 1].strip()
        return f"{self.path.relative_to(ROOT)}:{self.line}: {before}  ->  {changed}"

    def tests(self) -> list[str]:
        """Return pytest's arguments for the tests of the module."""
        folder = self.path.parent.relative_to(ROOT)
        own = sorted(map(str, ROOT.glob(TESTS[str(folder)])))
        if folder.name == "evidence":
            return [*own, *USERS_OF_EVIDENCE, *SHARED]
        return [*own, *SHARED, "-k", f"{folder.name} or {folder.name.replace('_', '-')} or {Path(own[0]).stem[:8]}"]


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
        yield Mutant(path=path, line=line, text=text)


def run_tests(mutant: Mutant) -> int:
    """Run the mutant's tests in this process, and return pytest's exit code."""
    own_code = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
        is_changed = Path(loader.path).resolve() == mutant.path
        return compile(mutant.text, loader.path, "exec") if is_changed else own_code(loader, name)

    SourceFileLoader.get_code = get_code  # type: ignore[method-assign]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    return pytest.main([*OPTIONS, *mutant.tests()])


def start(mutant: Mutant) -> int:
    """Run the mutant's tests in a child process, and return its id."""
    if pid := os.fork():
        return pid
    code: int = pytest.ExitCode.INTERNAL_ERROR
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
            os.dup2(nowhere.fileno(), 1)
            os.dup2(nowhere.fileno(), 2)
            code = run_tests(mutant)
    finally:
        os._exit(code)


def import_libraries(tests: Sequence[str]) -> None:
    """Import what the tests import, and forget the modules that may change, or import one that may."""
    with redirect_stdout(StringIO()) as said:
        code = pytest.main([*OPTIONS, "--collect-only", *tests])
    if code:
        sys.exit(said.getvalue())
    for name, module in list(sys.modules.items()):
        path = Path(getattr(module, "__file__", None) or "/").resolve()
        if any(path.is_relative_to(ROOT / folder) for folder in ("graphs", "studio", "tests")) and name != __name__:
            del sys.modules[name]


def main() -> int:
    """Test the mutants and print those that survive; return 1 if they are too many."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="*", default=list(TESTS))
    parser.add_argument("--number", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    os.chdir(ROOT)
    import_libraries(["tests/graphs/methods", "tests/graphs/evidence", *USERS_OF_EVIDENCE[1:]])
    for folder in options.folders:
        path = min((ROOT / folder).glob("*.py"))
        _, status = os.waitpid(start(Mutant(path=path, line=1, text=path.read_text(encoding="utf-8"))), 0)
        if status:
            sys.exit(f"The tests of {folder} fail without a mutant.")
    waiting, running, survived, killed = mutants(options.folders, options.seed), dict[int, Mutant](), 0, 0
    while survived + killed < options.number:
        while len(running) < options.jobs and (mutant := next(iter(waiting), None)):
            running[start(mutant)] = mutant
        if not running:
            break
        pid, status = os.wait()
        mutant, code = running.pop(pid), os.waitstatus_to_exitcode(status)
        if code not in (0, pytest.ExitCode.TESTS_FAILED, -signal.SIGPROF):
            continue
        survived, killed = survived + (code == 0), killed + (code != 0)
        sys.stdout.write(f"{'SURVIVED' if code == 0 else 'killed'}  {mutant}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{survived + killed} mutants, {killed} killed, {survived} survived\n")
    return killed < KILLED * (survived + killed)


if __name__ == "__main__":
    sys.exit(main())
