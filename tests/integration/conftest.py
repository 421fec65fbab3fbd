"""The real servers that integration tests share."""

from pathlib import Path

import pytest
from chroma_fixture import chroma_url, own_chroma
from node_fixture import node
from page_fixture import axe, chromium, npm, page, site, teller
from postgres_fixture import database_url, own_postgres, pgvector_url, postgres_url
from serve_scene import client, oracle, serving
from vllm_fixture import model_home, vllm_installed, vllm_url

__all__ = [
    "axe",
    "chroma_url",
    "chromium",
    "client",
    "database_url",
    "model_home",
    "node",
    "npm",
    "oracle",
    "own_chroma",
    "own_postgres",
    "page",
    "pgvector_url",
    "postgres_url",
    "serving",
    "site",
    "teller",
    "vllm_installed",
    "vllm_url",
]

FIVE_SECONDS = 5.0
POSTGRES = {"postgres_url", "own_postgres", "pgvector_url"}

SHARED = {"vllm_url": "model server", "vllm_installed": "model server", "model_home": "model server"}
"""Fixtures over a server of which there is one: their tests run in one process."""


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a module together, and those that share a server, where several processes run them."""
    groups: dict[Path, str] = {}
    for item in items:
        shared = [SHARED[name] for name in getattr(item, "fixturenames", ()) if name in SHARED]
        groups.setdefault(item.path, item.path.stem)
        groups[item.path] = min(shared, default=groups[item.path])
    for item in items:
        item.add_marker(pytest.mark.xdist_group(groups[item.path]))
        if item.get_closest_marker("postgres") or POSTGRES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.nightly)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the daily cases that took longer than five seconds: mark them as nightly, or make them shorter."""
    reports = [each for each in terminalreporter.stats.get("passed", []) if each.when == "call"]
    slow = [each for each in reports if each.duration > FIVE_SECONDS and not {"nightly", "faults"} & set(each.keywords)]
    if slow:
        terminalreporter.section("daily cases over five seconds")
    for report in sorted(slow, key=lambda each: -each.duration):
        terminalreporter.write_line(f"{report.duration:5.1f} s  {report.nodeid}")
