"""`sleuth doctor`: what works, what is missing, and the command that mends it."""

import asyncio

import typer
from rich.table import Table
from rich.text import Text

from sleuth.studio.cli.doctor_checks import Finding, examine
from sleuth.studio.console import JsonOption, activity, emit
from sleuth.tools.settings import Settings


def doctor(as_json: JsonOption = False) -> None:
    """Look at what works and what is missing; exit status 1 when something is."""
    with activity("Looking at everything"):
        findings = asyncio.run(examine(Settings()))
    emit(findings, as_json, _table(findings))
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark = Text("ok", style="green") if finding.ok else Text("fails", style="red")
        table.add_row(mark, finding.name, Text(finding.detail))
        if finding.fix:
            table.add_row("", "", Text(f"mend it: {finding.fix}", style="bold"))
    return table
