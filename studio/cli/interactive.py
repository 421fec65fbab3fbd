"""`sleuth ask` without a question: a chat in the terminal."""

import asyncio
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from rich.text import Text

from sleuth.graphs.core import Answer, Budget, Event
from sleuth.graphs.registry import CHAT
from sleuth.studio.client import Sleuth
from sleuth.studio.console import answer_view, emit, progress_console, watch
from sleuth.tools.errors import SleuthError

MAX_HISTORY = 1_000
"""Lines that are kept for the arrow keys."""


async def chat(sleuth: Sleuth, *, thread: str | None, values: dict[str, Any], budget: Budget, where: str = "") -> None:
    """Answer messages until Ctrl-D. Ctrl-C stops the present answer, which an empty message resumes.

    Args:
        sleuth: what is open.
        thread: the chat to continue; a new one if None.
        values: settings of the chat.
        budget: limits of each answer.
        where: a filter of the documents that a new chat searches.
    """
    console, name = progress_console(), thread or uuid4().hex[:12]
    console.print("Ask about your documents. Ctrl-C stops an answer, Ctrl-D ends the chat.", style="dim")
    is_begun, is_stopped = thread is not None, False
    with _history(sleuth.settings.home / "history"):
        while (message := _read("> ")) is not None:
            if not message.strip() and not is_stopped:
                continue
            if is_stopped and message.strip():
                console.print("The last answer was stopped. Press Enter to resume it.", style="yellow")
                continue
            if is_stopped:
                events = sleuth.runs.run(name)
            else:
                events = sleuth.stream(
                    message, method=CHAT.name, values=values, budget=budget, thread=name, where=where
                )
            try:
                answer = await _answer(sleuth, events)
            except SleuthError as error:
                console.print(Text(str(error), style="red"))
                continue
            is_begun, is_stopped = True, answer is None
            if answer:
                emit(answer.to_json(), as_json=False, human=answer_view(answer))
    if is_begun:
        console.print(f"To continue: sleuth ask --method chat --thread {name}", style="dim")


async def _answer(sleuth: Sleuth, events: AsyncGenerator[Event]) -> Answer | None:
    """Return the answer; None if Ctrl-C has stopped it."""
    task = asyncio.ensure_future(watch(events, progress_console(), on_stop=sleuth.runs.stopped))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        if not task.cancelled():
            raise
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _read(prompt: str) -> str | None:
    """Return a line; None at Ctrl-D. Ctrl-C clears the line. Blocks the event loop, in which nothing runs meanwhile."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while True:
            try:
                return input(prompt)
            except KeyboardInterrupt:
                progress_console().print()
            except EOFError:
                progress_console().print()
                return None
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _history(file: Path) -> Iterator[None]:
    """Edit lines with the arrow keys, and keep them in a file; do nothing where Python has no readline."""
    readline: ModuleType
    try:
        import readline
    except ImportError:
        yield
        return
    with suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(MAX_HISTORY)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(file)
