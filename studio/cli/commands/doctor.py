"""`sleuth doctor`."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sleuth.studio.cli.app import run_async
from sleuth.studio.cli.doctor_checks import Finding, examine, examine_model
from sleuth.studio.console.output import JsonOption, activity, emit
from sleuth.tools.settings import Settings


@run_async
async def doctor(
    *,
    model: Annotated[
        bool, typer.Option("--model", help="Also probe the model server: schemas, quotes, probabilities, streaming.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check the installation and the servers; exit with status 1 if a check fails."""
    settings = Settings()
    with activity("Running all checks"):
        findings = await examine(settings)
    if model:
        with activity("Probing the model server"):
            findings += await examine_model(settings)
    emit(findings, as_json, _table(findings))
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _table(findings: list[Finding]) -> Table:
    """Return a line for each check, which can succeed and have a remedy for what is limited, and for each remedy."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark, style = ("limited", "yellow") if finding.fix else ("ok", "green")
        mark, style = (mark, style) if finding.ok else ("fails", "red")
        table.add_row(Text(mark, style=style), finding.name, Text(finding.detail))
        if finding.fix:
            table.add_row("", "", Text(f"fix: {finding.fix}", style="bold"))
    return table
