"""The command line in processes of its own, forked from one that has imported everything: each starts in no time."""

import asyncio
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from preloaded import FORKS


@dataclass(frozen=True)
class Done:
    """Result of a command."""

    status: int
    out: str
    err: str

    def json(self) -> Any:
        """The one value on standard output; fails where there is more, or less."""
        return json.loads(self.out)


@dataclass(frozen=True)
class _Without:
    """A module finder that finds everything but these, as if they were not installed."""

    finder: Any
    names: Sequence[str]

    def hides(self, module: str) -> bool:
        return any(module == name or module.startswith(f"{name}.") for name in self.names)

    def find_spec(self, module: str, *more: Any) -> Any:
        return None if self.hides(module) else self.finder.find_spec(module, *more)

    def find_distributions(self, *context: Any) -> Any:
        found = getattr(self.finder, "find_distributions", None)
        return found(*context) if found else ()


def _hide(names: Sequence[str]) -> None:
    finders = [_Without(finder, names) for finder in sys.meta_path]
    for module in list(sys.modules):  # sleuth too, so that its modules are imported without these
        if finders[0].hides(module) or module.partition(".")[0] == "sleuth":
            del sys.modules[module]
    sys.meta_path[:] = finders  # type: ignore[assignment]  # as much of a finder as imports ask for


def _main(arguments: Sequence[str], environment: dict[str, str], folder: str, without: Sequence[str]) -> None:
    os.environ.update(environment)
    tempfile.tempdir = None  # the environment may name another one than that of the process that was forked
    if without:
        _hide(without)
    for number, name in ((1, "out"), (2, "err")):
        with (Path(folder) / name).open("wb") as file:
            os.dup2(file.fileno(), number)
    is_simulated = arguments[0] == "training.simulation"
    sys.argv = [*arguments] if is_simulated else ["sleuth", *arguments]
    importlib.import_module("training.simulation.__main__" if is_simulated else "sleuth.studio.cli.app").main()


def _run(
    arguments: Sequence[str], environment: dict[str, str], without: Sequence[str] = (), kill_after: float | None = None
) -> Done:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("out", "err"):  # of a process that is killed before it writes anything
            (Path(folder) / name).touch()
        process = FORKS.Process(target=_main, args=(arguments, environment, folder, without))
        process.start()
        process.join(300 if kill_after is None else kill_after)
        if kill_after is not None:
            with suppress(psutil.NoSuchProcess):  # it has just ended
                children = psutil.Process(process.pid).children(recursive=True)
                process.kill()
                assert psutil.wait_procs(children, timeout=30)[1] == [], f"processes of sleuth {arguments} stay"
            process.join()
        assert process.exitcode is not None, f"sleuth {arguments} does not end"
        out, err = ((Path(folder) / name).read_text(encoding="utf-8") for name in ("out", "err"))
        return Done(process.exitcode, out, err)


async def sleuth(*arguments: str, without: Sequence[str] = (), **environment: str) -> Done:
    """`sleuth ARGUMENTS` with these variables set, `without` some packages; or `python -m training.simulation …`."""
    return await asyncio.to_thread(_run, arguments, environment, without)


async def killed(*arguments: str, after: float, **environment: str) -> Done:
    """The same, killed after some seconds; its status is not -9 if it had ended before."""
    return await asyncio.to_thread(_run, arguments, environment, (), after)
