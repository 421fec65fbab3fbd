"""The report in Markdown: tables that can be read as they are."""

from collections.abc import Iterable, Mapping
from typing import Any

from sleuth.studio.evaluation.retrieval import METRICS, RetrievalResult
from sleuth.studio.evaluation.statistics import LEVEL, RESAMPLES, Difference, Interval
from sleuth.studio.evaluation.summary import Group
from sleuth.tools.text import markdown_table

Rows = list[list[str]]


def markdown(report: Mapping[str, Any]) -> str:
    """The whole report: what was evaluated, the tables, and how to repeat it."""
    parts = ["# Evaluation", *_about(report)]
    if retrieval := report.get("retrieval"):
        parts += ["## Search", *_retrieval_parts(retrieval)]
    return "\n\n".join([*parts, *_repeat(report)]) + "\n"


def percent(interval: Interval) -> str:
    """A share in percent with its interval."""
    if interval["mean"] is None or interval["low"] is None or interval["high"] is None:
        return "–"
    return f"{100 * interval['mean']:.1f} ({100 * interval['low']:.1f}–{100 * interval['high']:.1f})"


def aligned(rows: Rows) -> str:
    """A table for a terminal: columns as wide as their widest cell, the first to the left, the others to the right."""
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        [
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        for row in rows
    ]
    return "\n".join("  ".join(line).rstrip() for line in lines)


def retrieval_table(result: RetrievalResult) -> Rows:
    """Search as a table with its header: a mode per line."""
    rows = [["search", *METRICS, "p50 ms", "p95 ms", "first s", "MiB"]]
    for mode in result["modes"]:
        speed, line = result["speed"][mode], result["summary"]["all"]["systems"][mode]
        costs = (speed["p50_ms"], speed["p95_ms"], speed["first_seconds"])
        shown = [*(f"{number:.1f}" for number in costs), f"{speed['memory_mib']:.0f}"]
        rows.append([mode, *(percent(line[metric]) for metric in METRICS), *shown])
    return rows


def group_table(groups: Mapping[str, Group], by: str, metrics: Iterable[str]) -> Rows:
    """Some metrics in each group of questions, a system per line."""
    chosen = list(metrics)
    rows = [[by, "questions", "system", *chosen]]
    for name, group in groups.items():
        for system, line in group["systems"].items():
            rows.append([name, str(group["questions"]), system, *(percent(line[metric]) for metric in chosen)])
    return rows


def difference_table(differences: Iterable[Difference]) -> Rows:
    """Paired differences in points, with what so many questions can show at all."""
    rows = [["comparison", "metric", "difference in points", "p", "questions", "detectable", "questions needed"]]
    for each in differences:
        shown = percent(Interval(mean=each["mean"], low=each["low"], high=each["high"], n=each["n"]))
        p = "–" if each["p"] is None else f"{each['p']:.4f}"
        detectable = "–" if each["detectable"] is None else f"{100 * each['detectable']:.1f}"
        needed = "–" if each["needed"] is None else f"{each['needed']:,}"
        rows.append([f"{each['a']} − {each['b']}", each["metric"], shown, p, str(each["n"]), detectable, needed])
    return rows


def _about(report: Mapping[str, Any]) -> list[str]:
    data, chosen = report["data"], report["questions"]
    files = ", ".join(f"{file['set']} ({file['questions']})" for file in data["files"])
    collection = data["collection"]
    about = (
        f"{chosen} questions, from {files}; collection “{collection['name']}” with {collection['documents']:,} "
        f"documents and {collection['passages']:,} passages."
    )
    return [about, *(f"**Note:** {warning}" for warning in report["warnings"])]


def _retrieval_parts(result: RetrievalResult) -> list[str]:
    summary = result["summary"]
    parts = [
        f"{summary['all']['questions']} questions that name their gold passages; shares in percent, in brackets the "
        f"{LEVEL:.0%} interval of {RESAMPLES:,} paired bootstrap samples. “first s” is the first search with all that "
        "it loads, MiB the memory of the whole process after the mode's searches (modes come one after the other).",
        markdown_table(retrieval_table(result)),
    ]
    for by, groups in summary["by"].items():
        parts += [f"### By {by}", markdown_table(group_table(groups, by, METRICS))]
    if summary["differences"]:
        parts += ["### Differences", DIFFERENCES, markdown_table(difference_table(summary["differences"]))]
    return parts


DIFFERENCES = (
    "On the same questions. “detectable” is the smallest true difference, in points, that so many questions show four "
    "times in five; “questions needed” is what the difference found would take."
)


def _repeat(report: Mapping[str, Any]) -> list[str]:
    hashes = [f"{file['set']}: {file['sha256']}" for file in report["data"]["files"]]
    hashes.append(f"collection: {report['data']['collection']['sha256']}")
    packages = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    return [
        "## To repeat it",
        f"```sh\n{report['command']}\n```",
        f"Seed {report['seed']}. Versions: {packages}. All settings are in report.json.",
        "SHA-256 of the data: " + "; ".join(hashes) + ".",
    ]
