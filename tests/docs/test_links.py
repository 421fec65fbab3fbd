"""Relative links of the Markdown files lead to files; `make docs` checks those within the site, with their anchors."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *(*ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md")),
    *(page for folder in ("docs", "training") for page in (ROOT / folder).rglob("*.md")),
]
LINK = re.compile(r"\[[^\]]*\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")
FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_relative_links_lead_to_files(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert not missing


PATH = re.compile(r"`((?:agents|benchmarks|docs|examples|graphs|prompts|studio|tests|tools|training)/[\w/.-]+)`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_named_on_a_page_exist(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    new = ("best_passage.py", "NAME/")  # of the guide to a first change
    missing = [path for path in PATH.findall(text) if not ((ROOT / path).exists() or path.endswith(new))]
    assert not missing
