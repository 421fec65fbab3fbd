"""How commands speak: the result to standard output, all else to standard error."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic_core import to_json
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.segment import Segment

_INVISIBLE = {code: None for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}

Report = Callable[[str], None]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON value on standard output.")]


class _Screen(Console):
    """Shows no control characters: what a document or a model says must not steer the terminal."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            harmless = segment.control or segment.text.isprintable()
            yield segment if harmless else Segment(segment.text.translate(_INVISIBLE), segment.style)


def progress_console() -> Console:
    """For live progress, steps and warnings."""
    return _Screen(stderr=True, highlight=False)


def emit(value: object, as_json: bool, human: RenderableType) -> None:
    """The result: `value` for programs, `human` for people. Brackets in plain texts are not markup."""
    if as_json:
        sys.stdout.write(to_json(value, indent=2).decode() + "\n")
    else:
        _Screen(markup=False, highlight=False).print(human, soft_wrap=isinstance(human, str))


@contextmanager
def activity(title: str, *, live: bool = True) -> Iterator[Report]:
    """Shows what is going on and for how long; not `live`, or away from a terminal, each stage is one line."""
    console = progress_console()
    if not (live and console.is_terminal):
        yield lambda stage: console.print(stage, markup=False, soft_wrap=True)
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda stage: progress.update(task, description=stage)
