"""`sleuth report`."""

import asyncio
import json
import os
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Annotated, Any

import typer

from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget
from sleuth.graphs.core.method import REPORT
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.cli import options, run_options
from sleuth.studio.cli.app import run_async
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.studio.console.notices import warn_of_size
from sleuth.studio.console.output import JsonOption, emit, format_of, progress_console, save
from sleuth.studio.console.report_file import FORMATS
from sleuth.studio.console.run_view import answer_view, watch
from sleuth.tools.errors import UsageError


@run_async
async def report(
    question: Annotated[str, typer.Argument(help="What the report is about.")],
    *,
    method: Annotated[str | None, typer.Option(help="What researches the sections. Default: auto.")] = None,
    out: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="Write the report: .md, .html or .docx; repeatable.")
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Edit the outline before the research.")] = False,
    where: options.Where = "",
    label: run_options.Label = "",
    thread: options.Thread = None,
    set_: run_options.Set = None,
    wait: options.Wait = None,
    max_calls: run_options.Calls = None,
    max_tokens: run_options.Tokens = None,
    max_seconds: run_options.Seconds = None,
    verbose: options.Verbose = False,
    as_json: JsonOption = False,
) -> None:
    """Write a report of several sections, in which every sentence has its sources."""
    for file in out or []:
        format_of(file, FORMATS)
    budget = Budget(max_calls=max_calls, max_tokens=max_tokens, max_seconds=max_seconds)
    own = {"method": method, "approve": approve}
    values = options.parse_pairs(set_) | {name: value for name, value in own.items() if value}
    about: dict[str, Any] = {"budget": budget, "where": where, "label": label, "thread": thread}
    request = RunRequest(question=question, method=REPORT, values=values, **about)
    async with open_sleuth(options.settings_with(wait=wait), command="sleuth report") as sleuth:
        warn_of_size(sleuth.model, "a report")
        show = partial(watch, console=progress_console(), on_stop=sleuth.runs.mark_stopped, verbose=verbose)
        answer = await show(sleuth.run(request))
        while answer.asks is not None and sys.stdin.isatty():
            reply = await asyncio.to_thread(_edit, answer)
            again = request.model_copy(update={"question": reply, "thread": answer.thread})
            answer = await show(sleuth.run(again))
    if answer.asks is None:
        await save(answer, out or [], FORMATS)
    emit(answer.to_json(), as_json, answer_view(answer))


_HELP = """\
# The outline of the report: a line for each section, as `heading: question`.
# Unchanged, it is approved. Without any line, it is rejected."""


def _edit(answer: Answer) -> str:
    """Let the person edit the outline in their editor, and return their reply."""
    assert answer.asks
    (outline,) = answer.asks["action_requests"]
    lines = [f"{section['heading']}: {section['question']}" for section in outline["args"]["sections"]]
    with NamedTemporaryFile("w+", suffix=".txt", encoding="utf-8") as file:
        file.write("\n".join([_HELP, *lines, ""]))
        file.flush()
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
        try:
            subprocess.run([*shlex.split(editor), file.name], check=True)  # noqa: S603 - the person chose it
        except (OSError, subprocess.CalledProcessError, ValueError) as error:
            raise UsageError(f"The editor {editor!r} cannot be used ({error}). Set EDITOR.") from None
        edited = Path(file.name).read_text(encoding="utf-8")
    edited_lines = [line.strip() for line in edited.splitlines() if line.strip() and not line.startswith("#")]
    if edited_lines == lines:
        return "approve"
    parts = [line.partition(":") for line in edited_lines]
    sections = [
        {"heading": before.strip(), "question": after.strip()} if after else before for before, _, after in parts
    ]
    return json.dumps(sections, ensure_ascii=False) if sections else "reject"
