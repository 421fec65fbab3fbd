"""`sleuth ask` without a question: a chat in the terminal."""

import asyncio
import readline
import signal
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from rich.console import RenderableType
from rich.text import Text

from sleuth.graphs.chat.small_talk import COMMANDS as CHAT_COMMANDS
from sleuth.graphs.chat.small_talk import describe_commands, is_command, settings_of_command
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.events import Event
from sleuth.graphs.core.method import CHAT
from sleuth.graphs.evidence.answer_text import with_marks
from sleuth.graphs.registry import METHODS
from sleuth.studio.client.sleuth import Sleuth
from sleuth.studio.console.output import emit, progress_console
from sleuth.studio.console.run_view import answer_view, sources_view, watch
from sleuth.tools.errors import SleuthError, UnknownName

MAX_HISTORY = 1_000
"""Lines of the history for the arrow keys."""

COMMANDS = {**CHAT_COMMANDS, "new": "begin another conversation", "exit": "end the chat, as Ctrl-D does"}
"""The commands of the terminal; the chat has the first ones everywhere."""


@dataclass
class _Conversation:
    """The chat in the terminal: its thread, its settings, and the last answer of a method.

    `is_stopped`: the last message was stopped or has failed, and can be sent again.
    """

    thread: str
    values: dict[str, Any]
    is_stopped: bool = False
    answer: Answer | None = None


async def chat(
    sleuth: Sleuth,
    *,
    thread: str | None,
    values: dict[str, Any],
    budget: Budget,
    where: str = "",
    label: str = "",
    verbose: bool = False,
) -> None:
    """Answer messages until Ctrl-D or `/exit`. Ctrl-C stops the present answer.

    An empty message resumes one that was stopped or has failed; any other begins the next turn.

    Args:
        sleuth: the open collection and runs.
        thread: the chat to continue; a new one if None.
        values: settings of the chat.
        budget: limits of each answer.
        where: a filter of the documents that a new chat searches.
        label: what lists of runs show of a new chat instead of its first question.
        verbose: as in `watch`.
    """
    console = progress_console()
    send = partial(sleuth.stream, method=CHAT, budget=budget, where=where, label=label)
    talk = _Conversation(thread=thread or _new_thread(), values=values)
    console.print("Ask about your documents, or type /help. Ctrl-C stops an answer, Ctrl-D ends the chat.", style="dim")
    with _history(sleuth.settings.home / "history"):
        while (line := _read("> ")) is not None and (message := line.strip()).casefold() != "/exit":
            try:
                if is_command(message):
                    console.print(_run_command(talk, message))
                elif message or talk.is_stopped:
                    resumed = None if message else sleuth.runs.run(talk.thread)
                    events = resumed or send(message, values=talk.values, thread=talk.thread)
                    answer = await _answer(sleuth, events, verbose=verbose)
                    talk.is_stopped = answer is None or (talk.is_stopped and answer.is_small_talk)
                    if answer:
                        talk.answer = talk.answer if answer.is_small_talk else answer
                        emit(answer.to_json(), as_json=False, human=answer_view(answer, in_chat=True))
            except SleuthError as error:
                stored = await sleuth.runs.store.threads.find(talk.thread)
                talk.is_stopped = stored is not None and stored.state == "failed"
                remedy = " Press Enter to send the message again." if talk.is_stopped else ""
                console.print(Text(f"{error}{remedy}", style="red"))
    if thread or talk.answer or talk.is_stopped:
        console.print(f"To continue: sleuth ask --method chat --thread {talk.thread}", style="dim")


def _new_thread() -> str:
    return uuid4().hex[:12]


def _run_command(talk: _Conversation, message: str) -> RenderableType:
    """Run a slash command, and return what it shows.

    Raises:
        UsageError: the command, or the method, is unknown.
    """
    command, argument = [*message[1:].split(maxsplit=1), ""][:2]
    match command.casefold():
        case "help":
            return describe_commands(COMMANDS)
        case "new":
            talk.thread, talk.is_stopped, talk.answer = _new_thread(), False, None
            return "A new conversation."
        case "method" if argument:
            talk.values = settings_of_command(message)
            return f"The next questions are answered by {argument}."
        case "method":
            return f"Methods: {', '.join(METHODS)}."
        case "sources":
            return (
                sources_view(talk.answer.citations, with_marks(talk.answer.text, talk.answer.citations).form)
                if talk.answer and talk.answer.citations
                else "No sources yet."
            )
    raise UnknownName("command", command, list(COMMANDS), "/help lists the commands.")


async def _answer(sleuth: Sleuth, events: AsyncGenerator[Event], *, verbose: bool) -> Answer | None:
    """Return the answer; None if Ctrl-C has stopped it."""
    watching = watch(events, progress_console(), on_stop=sleuth.runs.mark_stopped, verbose=verbose, in_chat=True)
    task = asyncio.ensure_future(watching)
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
            except (KeyboardInterrupt, EOFError) as end:
                progress_console().print()
                if isinstance(end, EOFError):
                    return None
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _history(file: Path) -> Iterator[None]:
    """Let the arrow keys recall earlier lines, which are stored in a file."""
    with suppress(OSError):
        readline.read_history_file(file)
    readline.set_history_length(MAX_HISTORY)
    try:
        yield
    finally:
        with suppress(OSError):
            readline.write_history_file(file)
