"""Shell completion, without importing the commands: that would take seconds.

`completion.json` lists the parameters of all commands, and the names of methods and search modes. To write it after a
change of a command: `python -m sleuth.studio.cli.completion_table`. Threads and documents are read from SQLite, without
the libraries of the stores; a Postgres database is not read.
"""

import os
import sqlite3
import sys
import tomllib
from collections.abc import Callable
from contextlib import closing
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_group

Table = dict[str, Any]
Values = list[tuple[str, str]]
"""Completed words, each with a help text."""

MAX_VALUES = 100
_SECONDS = 0.1
"""Time to wait for a database that another process writes."""

_THREADS = "SELECT id, question FROM sleuth_threads WHERE owner = ? AND id >= ? AND id < ? ORDER BY updated_at DESC"
_DOCUMENTS = (
    "SELECT id, title FROM sleuth_documents WHERE owner = ? AND collection = ? AND id >= ? AND id < ? ORDER BY id"
)


def command_of(name: str, table: Table) -> Any:  # noqa: ANN401 - the class differs between versions of Typer
    """Return a command that has the parameters of the table and does nothing."""
    app = typer.Typer()
    _add(app, name, table["commands"][name], table)
    return get_group(app).commands[name]


def _add(app: typer.Typer, name: str, entry: Table, table: Table) -> None:
    if "commands" not in entry:
        app.command(name, help=entry["help"])(_function_with(entry["params"], table))
        return
    group = typer.Typer(help=entry["help"])
    for inner, described in entry["commands"].items():
        _add(group, inner, described, table)
    app.add_typer(group, name=name)


def _function_with(params: list[Table], table: Table) -> Callable[..., None]:
    """Return a function from whose signature Typer makes these parameters."""

    def command(**_values: object) -> None:
        """Do nothing: completion does not call it."""

    hints = {each["name"]: _hint(each, table) for each in params}
    order = [Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=hint) for name, hint in hints.items()]
    command.__annotations__ = hints
    command.__signature__ = Signature(order)  # type: ignore[attr-defined]  # `inspect.signature` reads it
    return command


def _hint(entry: Table, table: Table) -> Any:  # noqa: ANN401 - a type
    kind: Any = bool if entry.get("is_flag") else list[str] if entry.get("is_repeated") else str
    complete = _completer(entry["values"], table) if "values" in entry else None
    if "options" in entry:
        return Annotated[kind, typer.Option(*entry["options"], help=entry["help"], autocompletion=complete)]
    return Annotated[kind, typer.Argument(autocompletion=complete)]


def _completer(kind: str, table: Table) -> Callable[[str], list[tuple[str, str]]]:
    def complete(incomplete: str) -> list[tuple[str, str]]:
        if kind in table:
            return [(name, line) for name, line in table[kind].items() if name.startswith(incomplete)]
        return threads(incomplete) if kind == "threads" else documents(incomplete)

    return complete


def threads(begun: str) -> Values:
    """Return the ids of threads that begin so, the latest first, with their questions."""
    folder = _setting("runs") or _home()
    return _rows(Path(folder) / "runs.sqlite", _THREADS, _setting("owner") or "local", *_range(begun))


def documents(begun: str) -> Values:
    """Return the ids of documents that begin so, with their titles."""
    place = _setting("owner") or "local", _setting("collection") or "default"
    return _rows(Path(_home()) / "catalogue.db", _DOCUMENTS, *place, *_range(begun))


def _range(begun: str) -> tuple[str, str]:
    """Return the limits between which all texts begin so; the index of the ids is used."""
    return begun, begun + chr(sys.maxunicode)


def _rows(file: Path, query: str, *values: str) -> Values:
    """Return the rows of a query; none if the database is missing, of another release or locked."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=_SECONDS)) as connection:
            rows = connection.execute(f"{query} LIMIT {MAX_VALUES}", values).fetchall()
    except sqlite3.Error:
        return []
    return [(str(id), " ".join(str(about).split())[:80]) for id, about in rows]


def _setting(name: str) -> str:
    """Return a setting as text, empty by default. `Settings` would import pydantic, which takes too long here."""
    if value := os.environ.get(f"SLEUTH_{name.upper()}"):
        return value
    try:
        return str(tomllib.loads(Path("sleuth.toml").read_text(encoding="utf-8")).get(name, ""))
    except (OSError, ValueError):
        return ""


def _home() -> str:
    from platformdirs import user_data_path

    return _setting("home") or str(user_data_path("sleuth"))
