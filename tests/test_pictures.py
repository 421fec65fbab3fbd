"""The documentation shows every graph as it is, and has a place for every method's settings and paper."""

import re
from collections import Counter
from pathlib import Path
from runpy import run_path

import pytest

from sleuth.graphs.registry import METHODS

DOCS = Path(__file__).parents[1] / "docs"
README = DOCS.parent / "README.md"
PAGES = sorted(DOCS.rglob("*.md"))
HOOKS = run_path(str(DOCS / "hooks.py"))
graphs, mermaid, redraw = HOOKS["graphs"], HOOKS["mermaid"], HOOKS["redraw"]


def test_diagrams_equal_the_code() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert redraw(text) == text, f"{page} is out of date: run `python docs/hooks.py`"


def test_every_graph_and_every_method_is_documented_once() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    published = [name for name, method in METHODS.items() if method.parts]
    named = {"graph:": graphs(), "generate: method-settings ": graphs(), "generate: fidelity ": published}
    for marker, wanted in named.items():
        found = re.findall(f"<!-- {marker}(.+) -->", text)
        wrong = Counter(found) - Counter([*wanted]) | Counter([*wanted]) - Counter(found)
        assert not wrong, (
            f"docs/methods has the line `<!-- {marker}NAME -->` once for each method: mend that of {[*wrong]}"
        )


def test_readme_has_a_row_for_every_published_method() -> None:
    section = README.read_text(encoding="utf-8").split("## Methods")[1].split("## Results")[0]
    found = set(re.findall(r"`([a-z-]+)`", section))
    wanted = {name for name, method in METHODS.items() if not method.paper.startswith("none")}
    assert found - METHODS.keys() == set(), "README.md, Methods: remove the rows of methods that no longer exist"
    assert wanted - found == set(), "README.md, Methods: add a row, or the name of a baseline to the last row"


@pytest.mark.parametrize("name", graphs())
def test_a_picture_has_every_node(name: str) -> None:
    assert set(re.findall(r"\w+", mermaid(graphs()[name]))) >= graphs()[name].nodes.keys()
