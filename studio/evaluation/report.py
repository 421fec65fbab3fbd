"""The report: what was evaluated, the tables, how to repeat it, and all answers."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from pydantic_core import to_json

from sleuth.studio.evaluation.results import COMPARED, COST, EVIDENCE, METRICS, QUALITY, RESULTS
from sleuth.studio.evaluation.retrieval import COMPARED as SEARCH_COMPARED
from sleuth.studio.evaluation.retrieval import FOUND
from sleuth.studio.evaluation.retrieval import METRICS as SEARCH_METRICS
from sleuth.studio.evaluation.run_folder import PLAN, REPORT, read_json, read_lines, write
from sleuth.studio.evaluation.scoring import (
    LEVEL,
    RESAMPLES,
    Difference,
    Interval,
    SystemScores,
    difference,
    paired,
    scores_by,
)
from sleuth.tools.errors import UsageError
from sleuth.tools.text.markdown import markdown_table

Rows = list[list[str]]

_STYLE = "body{font:15px/1.5 system-ui;max-width:1100px;margin:2em auto}td,th{padding:.25em .7em;text-align:left}"


def _heading(metric: str) -> str:
    return METRICS[metric][0] if metric in METRICS else metric


def cell(metric: str, interval: Interval) -> str:
    """Return a mean with its interval: a share in percent, or an amount, without decimals where it is large."""
    mean, low, high = interval["mean"], interval["low"], interval["high"]
    if mean is None or low is None or high is None:
        return "–"
    unit, digits = (1, 0 if mean >= 100 else 2) if metric in COST else (100, 1)
    return f"{unit * mean:,.{digits}f} ({unit * low:,.{digits}f} to {unit * high:,.{digits}f})"


def retrieval_table(result: Mapping[str, Any]) -> Rows:
    """Return search as a table with its header: a mode per line."""
    rows = [["search", *SEARCH_METRICS, "p50 ms", "p95 ms", "first s"]]
    for mode in result["modes"]:
        speed, line = result["speed"][mode], result["summary"]["all"]["systems"][mode]
        costs = (f"{speed[name]:.1f}" for name in ("p50_ms", "p95_ms", "first_seconds"))
        rows.append([mode, *(cell(metric, line[metric]) for metric in SEARCH_METRICS), *costs])
    return rows


def methods_table(result: Mapping[str, Any], metrics: Iterable[str]) -> Rows:
    """Return some metrics, a system per line; those without a value for any question are left out."""
    lines = result["summary"]["all"]["systems"]
    columns = [metric for metric in metrics if any(line[metric]["n"] for line in lines.values())]
    rows = [["system", *(_heading(metric) for metric in columns)]]
    return rows + [[system, *(cell(metric, line[metric]) for metric in columns)] for system, line in lines.items()]


def difference_table(differences: Iterable[Difference]) -> Rows:
    """Return paired differences (shares in points), with the smallest difference that the questions can detect."""
    rows = [["comparison", "metric", "difference", "p", "questions", "detectable", "questions needed"]]
    for comparison in differences:
        names, metric = f"{comparison['a']} − {comparison['b']}", comparison["metric"]
        p = "–" if comparison["p"] is None else f"{comparison['p']:.4f}"
        unit = 1 if metric in COST else 100
        detectable = "–" if comparison["detectable"] is None else f"{unit * comparison['detectable']:,.1f}"
        needed = "–" if comparison["needed"] is None else f"{comparison['needed']:,}"
        rows.append([names, _heading(metric), cell(metric, comparison), p, str(comparison["n"]), detectable, needed])
    return rows


DIFFERENCES = (
    "On the same questions, shares in points. “detectable” is the smallest true difference that these questions detect "
    "four times in five; “questions needed” is what the difference found would take."
)


def write_report(folder: Path, report: Mapping[str, Any]) -> None:
    """Write the report as JSON, and as a page that loads nothing from elsewhere. Blocks."""
    title = f"Evaluation ({report['title']})" if report["title"] else "Evaluation"
    blocks = [f"# {title}", *([f"> {report['notice']}"] if report["notice"] else []), _about(report)]
    blocks += [f"> Note: {line}" for line in report["warnings"]]
    methods, retrieval = report.get("methods"), report.get("retrieval")
    blocks += _methods_sections(report["models"], methods) if methods else []
    blocks += _search_sections(retrieval) if retrieval else []
    blocks += _origin(report)
    blocks += _answers(methods["answers"], folder) if methods else []
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    # The texts of questions and answers have no markup, links or pictures.
    body = MarkdownIt("zero").enable(["heading", "blockquote", "table", "fence"]).render("\n\n".join(blocks))
    page = f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'
    write(folder / "report.html", page)
    write(folder / REPORT, to_json(report, indent=2).decode() + "\n")


def _about(report: Mapping[str, Any]) -> str:
    files = ", ".join(f"{file['set']} ({file['questions']})" for file in report["data"]["files"])
    collection = report["data"]["collection"]
    return (
        f"{report['questions']} questions, from {files}; collection “{collection['name']}” with "
        f"{collection['documents']:,} documents and {collection['passages']:,} passages. In brackets the {LEVEL:.0%} "
        f"interval of {RESAMPLES:,} paired bootstrap samples over questions."
    )


def _methods_sections(models: Mapping[str, str], result: Mapping[str, Any]) -> list[str]:
    counted = result["summary"]["all"]["questions"]
    played = ", ".join(f"{role}: {name}" for role, name in models.items())
    runs = f"{result['runs']:,} runs, {counted} questions with a run of every system. Models: {played}."
    blocks = ["## Methods", runs]
    for title, metrics in (("Quality", QUALITY), ("Evidence", EVIDENCE), ("Cost per question", COST)):
        meanings = " ".join(f"{heading}: {meaning}" for heading, meaning in metrics.values())
        blocks += [f"### {title}", markdown_table(methods_table(result, metrics)), meanings]
    blocks += _groups(result["summary"], "By", ("f1", "em", "refused", "all_shown", "calls"))
    return blocks + _differences(result["summary"], "Differences")


def _answers(answers: Iterable[Mapping[str, Any]], folder: Path) -> list[str]:
    """Return all answers next to the gold ones, the worst first, and how to open their runs."""
    rows = [["system", "question", "gold answer", "answer", "status", "F1", "gold shown", "thread"]]
    for answer in sorted(answers, key=lambda answer: answer["f1"] or 0.0):
        gold = " / ".join(answer["expected"][:3]) or "(no answer)"
        f1 = "–" if answer["f1"] is None else f"{100 * answer['f1']:.0f}"
        text = (answer["problem"] or answer["said"]).strip()
        outcome = [text, answer["status"], f1, answer["gold_shown"], answer["thread"]]
        rows.append([answer["system"], answer["asked"], gold, *outcome])
    command = f"SLEUTH_RUNS={shlex.quote(str(folder))} sleuth runs show THREAD"
    return ["## Answers, the worst first", f"```sh\n{command}\n```", markdown_table(rows)]


def _search_sections(result: Mapping[str, Any]) -> list[str]:
    about = (
        f"{result['summary']['all']['questions']} questions that name their gold passages; shares in percent. "
        "“first s” is the first search with all that it loads."
    )
    blocks = ["## Search", about, markdown_table(retrieval_table(result))]
    blocks += _groups(result["summary"], "Search by", SEARCH_METRICS)
    return blocks + _differences(result["summary"], "Differences in search")


def _groups(summary: Mapping[str, Any], heading: str, metrics: Sequence[str]) -> list[str]:
    """Return some metrics for each group of questions, a system per line."""
    blocks = []
    for by, groups in summary["by"].items():
        rows = [[by, "questions", "system", *map(_heading, metrics)]]
        for name, group in groups.items():
            for system, line in group["systems"].items():
                cells = (cell(metric, line[metric]) for metric in metrics)
                rows.append([name, str(group["questions"]), system, *cells])
        blocks += [f"### {heading} {by}", markdown_table(rows)]
    return blocks


def _differences(summary: Mapping[str, Any], heading: str) -> list[str]:
    differences = summary["differences"]
    return [f"### {heading}", DIFFERENCES, markdown_table(difference_table(differences))] if differences else []


def _origin(report: Mapping[str, Any]) -> list[str]:
    hashes = [f"{file['set']}: {file['sha256']}" for file in report["data"]["files"]]
    hashes.append(f"collection: {report['data']['collection']['sha256']}")
    packages = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    return [
        "## To repeat it",
        f"```sh\n{report['command']}\n```",
        f"Seed {report['seed']}. Versions: {packages}. All settings and prompt hashes are in report.json.",
        "SHA-256 of the data: " + "; ".join(hashes) + ".",
    ]


def compare(a: Path, b: Path) -> dict[str, Any]:
    """Return the differences between two evaluations, b minus a.

    The systems and search modes that both folders have are paired, or the only one of each. `labels` must be shown
    wherever the numbers are.

    Raises:
        UsageError: a folder without a report, or nothing that both have.
    """
    plans = [read_json(folder / PLAN) for folder in (a, b)]
    reports = [read_json(folder / REPORT) for folder in (a, b)]
    runs = [scores_by("system", read_lines(folder / RESULTS)) for folder in (a, b)]
    searches = [scores_by("mode", read_lines(folder / FOUND)) for folder in (a, b)]
    seed = int(reports[0]["seed"])
    differences = [*_comparisons(runs, COMPARED, seed), *_comparisons(searches, SEARCH_COMPARED, seed)]
    if not differences:
        raise UsageError(f"{a} and {b} have no question in common that the same method or search was asked.")
    return {
        "a": str(a),
        "b": str(b),
        "differing": sorted(key for key in {*plans[0], *plans[1]} if plans[0].get(key) != plans[1].get(key)),
        "labels": [
            f"{side}: {report['notice']}" for side, report in zip("ab", reports, strict=True) if report["notice"]
        ],
        "differences": differences,
    }


def _comparisons(sides: list[dict[str, SystemScores]], metrics: tuple[str, ...], seed: int) -> list[Difference]:
    before, after = sides
    pairs = [(name, name) for name in after if name in before]
    if not pairs and len(before) == len(after) == 1:
        pairs = [(next(iter(before)), next(iter(after)))]
    differences = [
        difference(f"b: {b}", f"a: {a}", metric, paired(after[b], before[a], metric), seed=seed)
        for a, b in pairs
        for metric in metrics
    ]
    return [comparison for comparison in differences if comparison["n"]]
