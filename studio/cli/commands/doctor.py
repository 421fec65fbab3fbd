"""`sleuth doctor`."""

import typer
from rich.table import Table
from rich.text import Text

from sleuth.studio.cli.app import run_async
from sleuth.studio.cli.doctor_checks import Finding, examine
from sleuth.studio.console import JsonOption, activity, emit
from sleuth.tools.settings import Settings


@run_async
async def doctor(as_json: JsonOption = False) -> None:
    """Check the installation and the servers; exit with status 1 if a check fails."""
    with activity("Running all checks"):
        findings = await examine(Settings())
    emit(findings, as_json, _table(findings))
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _table(findings: list[Finding]) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark = Text("ok", style="green") if finding.ok else Text("fails", style="red")
        table.add_row(mark, finding.name, Text(finding.detail))
        if finding.fix:
            table.add_row("", "", Text(f"fix: {finding.fix}", style="bold"))
    return table
