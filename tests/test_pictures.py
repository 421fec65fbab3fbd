"""The documentation shows every graph as it is, and has a place for every method's settings and paper."""

import re
from pathlib import Path
from runpy import run_path

import pytest

from sleuth.graphs.registry import METHODS

DOCS = Path(__file__).parents[1] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
HOOKS = run_path(str(DOCS / "hooks.py"))
graphs, mermaid, redraw = HOOKS["graphs"], HOOKS["mermaid"], HOOKS["redraw"]


def test_diagrams_equal_the_code() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert redraw(text) == text, f"{page} is out of date: run `python docs/hooks.py`"


def test_every_graph_and_every_method_is_documented_once() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert sorted(re.findall(r"<!-- graph:(.+) -->", text)) == sorted(graphs())
    assert sorted(re.findall(r"<!-- generate: method-settings (.+) -->", text)) == sorted([*METHODS, "chat"])
    published = [name for name, method in METHODS.items() if method.parts]
    assert sorted(re.findall(r"<!-- generate: fidelity (.+) -->", text)) == sorted(published)


@pytest.mark.parametrize("name", graphs())
def test_a_picture_has_every_node(name: str) -> None:
    assert set(re.findall(r"\w+", mermaid(graphs()[name]))) >= graphs()[name].nodes.keys()
