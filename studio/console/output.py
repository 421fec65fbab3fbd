"""Output of commands: the result on standard output, everything else on standard error."""

import asyncio
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic_core import to_json
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.panel import Panel
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from sleuth.tools.errors import UsageError

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_CONTROLS = [code for code in (*range(32), *range(127, 160), *_BIDI) if chr(code) not in "\t\n"]
_REMOVED = dict.fromkeys(_CONTROLS)
_ESCAPED = {code: f"\\u{code:04x}" for code in _CONTROLS}
_ESCAPED_LINE = _ESCAPED | {ord(each): f"\\u{ord(each):04x}" for each in "\t\n\u2028\u2029"}
"""Also the characters that end a line, for some programs also in JSON."""
_GAP, _LEAST_FOLDED = 2, 20
"""Spaces between columns, and the characters that a folded column keeps on a narrow terminal."""

Report = Callable[[str], None]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON value on standard output.")]

Formats = Mapping[str, tuple[str, Callable[[Any], bytes]]]
"""The media type and the writer of each format of a file, by the end of its name."""


def format_of(file: Path, formats: Formats) -> str:
    """Return the format of a file by its name; raise UsageError for an unknown one."""
    suffix = file.name.rpartition(".")[2].lower()
    if suffix not in formats:
        raise UsageError(f"{file.name!r} must end with one of: {', '.join(f'.{each}' for each in formats)}.")
    return suffix


async def save(value: object, files: Iterable[Path], formats: Formats) -> None:
    """Write a value to files, each in the format of its name, and print their names."""
    for file in files:
        await asyncio.to_thread(file.write_bytes, formats[format_of(file, formats)][1](value))
        progress_console().print(Text(f"Written: {file}"))


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def printable(text: str) -> str:
    """Remove control and bidirectional characters: text from documents and models must not control the terminal."""
    return text if text.isprintable() else text.translate(_REMOVED)


def escaped(line: str) -> str:
    r"""Return a line with control and bidirectional characters as \uXXXX, as JSON writes them: it stays one line."""
    return line if line.isprintable() else line.translate(_ESCAPED_LINE)


class _Screen(Console):
    """Console that prints no control characters, reads no markup, and wraps lines on a terminal only."""

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(stderr=stderr, markup=False, emoji=False, highlight=False)
        self.soft_wrap = not self.is_terminal

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


class Listing(Table):
    """Table for results: columns are printed whole, except for `folded` ones, which wrap.

    On a terminal that is too narrow, the table is wider than the terminal, so that ids can still be copied.
    """

    def __init__(self, *headings: str, folded: Iterable[str] = (), right: Iterable[str] = ()) -> None:
        super().__init__(box=None, padding=(0, _GAP, 0, 0), header_style="dim")
        for heading in headings:
            side: JustifyMethod = "right" if heading in right else "left"
            self.add_column(heading, justify=side, overflow="fold", no_wrap=heading not in folded)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unlimited = options.update(width=sys.maxsize)
        needed = 0
        for column in self.columns:
            widest = max(Measurement.get(console, unlimited, cell).maximum for cell in (column.header, *column.cells))
            column.min_width = widest if column.no_wrap else min(widest, _LEAST_FOLDED)
            needed += column.min_width + _GAP
        yield from super().__rich_console__(console, options.update_width(max(options.max_width, needed)))


def progress_console() -> Console:
    """Return the console for live progress, steps and warnings."""
    return _Screen(stderr=True)


def emit(value: object, as_json: bool, human: RenderableType) -> None:
    """Print a result: `value` as JSON, or `human`, which is unwrapped and tab-separated outside a terminal."""
    screen = _Screen()
    if as_json:
        sys.stdout.write(to_json(value, indent=2).decode().translate(_ESCAPED) + "\n")
    elif screen.is_terminal:
        screen.print(human, soft_wrap=isinstance(human, str), crop=False)
    else:
        sys.stdout.writelines(f"{printable(line)}\n" for line in _lines(human))


def _lines(human: RenderableType) -> Iterator[str]:
    """Yield what a renderable contains as plain lines: tables as tab-separated values, panels without their frame."""
    match human:
        case str():
            yield human
        case Text():
            yield human.plain
        case Group():
            for part in human.renderables:
                yield from _lines(part)
        case Panel():
            yield from _lines(human.title or "")
            yield from _lines(human.renderable)
        case Table():
            headings = [[column.header for column in human.columns]] if human.show_header else []
            for row in (*headings, *zip(*(column.cells for column in human.columns), strict=True)):
                yield "\t".join(" ".join(" ".join(_lines(cell)).split()) for cell in row)
        case _:
            raise TypeError(f"{type(human).__name__} has no plain form.")


def progress_bars(*, transient: bool = True) -> Progress:
    """Return bars with counts, elapsed and remaining time, shown on a terminal only."""
    console = progress_console()
    times = TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn()
    columns = TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), *times
    return Progress(*columns, console=console, transient=transient, disable=not console.is_terminal)


@contextmanager
def activity(title: str, *, live: bool = True) -> Iterator[Report]:
    """Show the current stage and its duration; without `live` or a terminal, print a line for each stage."""
    console = progress_console()
    if not (live and console.is_terminal):
        yield lambda stage: console.print(stage, markup=False, soft_wrap=True)
        return
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda stage: progress.update(task, description=stage)
