"""`sleuth doctor`."""

from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from sleuth.studio.cli.app import run_async
from sleuth.studio.cli.doctor_checks import Finding, examine, examine_model
from sleuth.studio.console.output import JsonOption, activity, emit
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings


@run_async
async def doctor(
    *,
    model: Annotated[
        bool, typer.Option("--model", help="Also probe the model server: schemas, quotes, probabilities, streaming.")
    ] = False,
    removed: Annotated[str | None, typer.Option("--bundle", "--log", hidden=True)] = None,
    as_json: JsonOption = False,
) -> None:
    """Check the installation and the servers; exit with status 1 if a check fails."""
    if removed:
        raise UsageError("--bundle and --log were removed. For an issue report: sleuth doctor --json > report.json")
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
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        table.add_row(_mark(finding), finding.name, Text(finding.detail))
        if finding.fix:
            table.add_row("", "", Text(f"fix: {finding.fix}", style="bold"))
    return table


def _mark(finding: Finding) -> Text:
    """Return the mark of a check: it can succeed and have a remedy for what is limited."""
    if not finding.ok:
        return Text("fails", style="red")
    return Text("limited", style="yellow") if finding.fix else Text("ok", style="green")
