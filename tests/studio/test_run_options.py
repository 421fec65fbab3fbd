"""Every surface takes the options of a run, and passes them on as one `RunRequest`."""

import inspect
from collections.abc import Set

import pytest

from sleuth.graphs.core.context import RunOptions, RunParameters
from sleuth.graphs.runs.request import RunRequest
from sleuth.studio.cli.commands.ask import ask
from sleuth.studio.cli.commands.report import report
from sleuth.studio.cli.commands.survey import survey
from sleuth.studio.mcp import Tools
from sleuth.studio.server.schemas.runs import RunForm

OPTIONS = {"method", "values", "budget", "where", "label"}
"""What each surface takes, by the names of `RunRequest`."""
NAMES = {"settings": "values", "set_": "values", "max_calls": "budget", "max_tokens": "budget", "max_seconds": "budget"}
"""Names of the command line and of MCP."""
SURFACES = {
    "sleuth ask": inspect.signature(ask).parameters.keys(),
    "sleuth survey": inspect.signature(survey).parameters.keys(),
    "sleuth report": inspect.signature(report).parameters.keys(),
    "Python": RunOptions.__annotations__.keys(),
    "HTTP": RunForm.model_fields.keys(),
    "MCP ask": inspect.signature(Tools.ask).parameters.keys(),
    "MCP survey": inspect.signature(Tools.survey).parameters.keys(),
    "MCP report": inspect.signature(Tools.report).parameters.keys(),
}
ONE_METHOD = {
    "sleuth survey": {"method"},
    "sleuth report": set(),
    "MCP survey": {"method", "values"},
    "MCP report": {"method", "values"},
}
"""What these take by options of their own."""


@pytest.mark.parametrize("surface", SURFACES)
def test_surface_takes_the_options_of_a_run(surface: str) -> None:
    found = {NAMES.get(name, name) for name in SURFACES[surface]}
    assert found >= OPTIONS - ONE_METHOD.get(surface, set())


def test_options_of_a_run_are_those_of_the_surfaces() -> None:
    not_everywhere: Set[str] = {"profile", "model"}  # of the settings, and of the server
    assert RunParameters.model_fields.keys() - not_everywhere == OPTIONS - {"method"}
    assert RunRequest.model_fields.keys() > OPTIONS
