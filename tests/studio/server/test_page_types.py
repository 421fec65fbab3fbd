"""The page's types of the server's JSON are those of the OpenAPI description."""

import re
from pathlib import Path

import pytest

from sleuth.studio.server.app import create_app
from sleuth.tools.settings import Settings

TYPES = Path(__file__).parents[3] / "studio" / "web" / "src" / "types.ts"
INTERFACE = re.compile(r"^export interface (\w+)(?: extends (\w+))? \{\n(.*?)^\}", re.M | re.S)
FIELD = re.compile(r"^  (\w+)(\??):", re.M)
SCHEMAS = {
    "Budget": "BudgetForm",
    "Checkpoint": "CheckpointDetails",
    "Cost": "Cost",
    "CallText": "ModelCall",
    "DocumentRow": "Listed",
    "DocumentText": "DocumentView",
    "Health": "Health",
    "Ingest": "Ingest",
    "Method": "MethodView",
    "Moment": "CheckpointView",
    "NodeCost": "NodeCost",
    "Passage": "PassageView",
    "Run": "RunView",
    "Thread": "ThreadRow",
}
"""The schema of each interface of the page; the others are of answers and events, which have none."""


@pytest.fixture(scope="module")
def described(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, object]]:
    """The schemas of the description."""
    description = create_app(Settings(home=tmp_path_factory.mktemp("home"))).openapi()
    schemas: dict[str, dict[str, object]] = description["components"]["schemas"]
    return schemas


def fields(interface: str) -> dict[str, str]:
    """Return the fields of an interface, each with "?" if it may be missing."""
    (found,) = [each for each in INTERFACE.findall(TYPES.read_text("utf-8")) if each[0] == interface]
    return (fields(found[1]) if found[1] else {}) | dict(FIELD.findall(found[2]))


@pytest.mark.parametrize("interface", SCHEMAS)
def test_page_reads_fields_that_the_server_describes(interface: str, described: dict[str, dict[str, object]]) -> None:
    schema = described[SCHEMAS[interface]]
    properties, always = schema["properties"], schema.get("required", [])
    assert isinstance(properties, dict)
    assert isinstance(always, list)
    read = fields(interface)
    assert read.keys() <= properties.keys()
    if not interface.endswith("Budget"):
        assert {name for name, optional in read.items() if not optional} <= set(always)
