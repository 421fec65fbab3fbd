"""The Grafana dashboard and the table of the documentation against the metrics that exist."""

import json
import re
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from sleuth.studio.server.telemetry.metrics import Telemetry

ROOT = Path(__file__).parents[3]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "examples" / "deploy" / "grafana-dashboard.json").read_text())
METRIC = re.compile(r"\bsleuth_\w+")
SUFFIX = re.compile(r"_(total|bucket|count|sum)$")


def existing() -> dict[str, set[str]]:
    """Return the labels of every metric by its name."""
    telemetry = Telemetry()
    found: dict[str, set[str]] = {}
    for registry in (telemetry.registry, telemetry._by_owner):
        assert isinstance(registry, CollectorRegistry)
        for collector in registry._collector_to_names:
            (family,) = collector.describe() if hasattr(collector, "describe") else collector.collect()
            found[family.name] = set(getattr(collector, "_labelnames", ()))
    return found


def queries() -> list[str]:
    return [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]


def test_every_query_names_an_existing_metric_and_its_labels() -> None:
    metrics = existing()
    assert len(queries()) > 15
    for query in queries():
        (name,) = {SUFFIX.sub("", each) for each in METRIC.findall(query)}
        assert name in metrics, query
        used = {label.strip() for group in re.findall(r"by \(([^)]*)\)", query) for label in group.split(",")}
        used |= set(re.findall(r'(\w+)="', query))
        assert used - {"le"} <= metrics[name], query


def test_every_metric_is_on_the_dashboard_and_documented() -> None:
    shown = {SUFFIX.sub("", name) for query in queries() for name in METRIC.findall(query)}
    page = (ROOT / "docs" / "operations" / "monitoring.md").read_text()
    documented = {SUFFIX.sub("", name) for name in re.findall(r"^\| `(sleuth_\w+)`", page, re.MULTILINE)}
    assert shown == documented == set(existing())
