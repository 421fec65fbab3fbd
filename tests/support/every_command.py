"""Every command of the command line, as it is typed."""

from typing import Any

from sleuth.studio.cli.app import COMMANDS, load


def every_command() -> dict[str, Any]:
    """Return Typer's commands by their names, such as `runs list`; imports all of them."""
    loaded = {name: load(name) for name in COMMANDS}
    inner = {
        f"{name} {each}": found
        for name, group in loaded.items()
        for each, found in getattr(group, "commands", {}).items()
    }
    return {name: command for name, command in loaded.items() if not hasattr(command, "commands")} | inner
