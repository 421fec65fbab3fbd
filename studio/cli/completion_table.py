"""Writes `completion.json`, from which `sleuth.studio.cli.completion` completes words; imports all commands."""

import json
from typing import Any

from sleuth.graphs.registry import METHODS, OTHERS
from sleuth.studio.cli.app import COMMANDS, TABLE, load
from sleuth.studio.cli.completion import Table
from sleuth.tools.search import MODES

_VALUES = {
    "mode": "modes",
    "thread": "threads",
    "threads": "threads",
    "id_": "documents",
    "ids": "documents",
}
"""Parameters with values of their own, and the kind of the values."""


def to_text() -> str:
    """Return the content of `completion.json`: the table of all commands. Imports all of them."""
    table = {
        "commands": {name: _entry(load(name), name) for name in COMMANDS},
        "methods": {name: method.line for name, method in [*METHODS.items(), *OTHERS.items()]},
        "modes": dict.fromkeys(MODES, ""),
    }
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def _entry(command: Any, path: str) -> Table:  # noqa: ANN401 - the class differs between versions of Typer
    line = " ".join(command.help.split("\n\n")[0].split())
    if hasattr(command, "commands"):
        return {"help": line, "commands": {name: _entry(each, name) for name, each in command.commands.items()}}
    return {"help": line, "params": [_described(param, path) for param in command.params if param.name != "help"]}


def _described(param: Any, command: str) -> Table:  # noqa: ANN401 - as above
    """Return what completion needs of a parameter, without what is usual."""
    is_method = param.name == "method" or (command, param.name) == ("methods", "name")
    values = "methods" if is_method else _VALUES.get(param.name)
    is_repeated = param.nargs == -1 or (param.param_type_name == "option" and param.multiple)
    about = {"name": param.name, "values": values, "is_repeated": is_repeated or None}
    if param.param_type_name == "option":
        about |= {"options": [*param.opts, *param.secondary_opts], "help": param.help or ""}
        about |= {"is_flag": param.is_flag or None}
    return {name: value for name, value in about.items() if value is not None}


if __name__ == "__main__":
    TABLE.write_text(to_text(), encoding="utf-8")
