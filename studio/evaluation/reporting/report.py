"""The report as blocks: what was evaluated, the tables, what to read, and how to repeat it."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sleuth.studio.evaluation.reporting import plots
from sleuth.studio.evaluation.reporting.blocks import Block, Code, Heading, Paragraph, Table
from sleuth.studio.evaluation.scoring import (
    COST,
    EVIDENCE,
    LEVEL,
    METRICS,
    QUALITY,
    RESAMPLES,
    Difference,
    Failure,
    Group,
    Interval,
    MethodsResult,
    NodeMeans,
    RetrievalResult,
)

Rows = list[list[str]]

NAMES = {
    "em": "EM",
    "f1": "F1",
    "contained": "contained",
    "rouge_l": "ROUGE-L",
    "acc_lm": "Acc-LM",
    "crag": "CRAG score",
    "refused": "refused",
    "answered_em": "EM of answered",
    "answered_f1": "F1 of answered",
    "support": "support",
    "citation_precision": "citation precision",
    "citation_recall": "citation recall",
    "quoted": "answer quoted",
    "shown": "gold shown",
    "all_shown": "all gold shown",
    "tokens": "tokens",
    "calls": "calls",
    "prompt_tokens": "prompt",
    "cached_tokens": "of it cached",
    "completion_tokens": "completion",
    "model_seconds": "model seconds",
    "seconds": "seconds",
}
"""Metrics as readers see them."""

COSTS = ("calls", "tokens", "prompt_tokens", "cached_tokens", "completion_tokens", "model_seconds", "seconds")


def percent(interval: Interval) -> str:
    """Return a share in percent with its interval."""
    return _shown(interval, 100, 1)


def amount(interval: Interval) -> str:
    """Return a number per question with its interval; without decimals where it is large."""
    return _shown(interval, 1, 0 if (interval["mean"] or 0) >= 100 else 2)


def cell(metric: str, interval: Interval) -> str:
    """Return the interval in the metric's unit."""
    return amount(interval) if metric in COSTS else percent(interval)


def _shown(interval: Interval, unit: int, digits: int) -> str:
    if interval["mean"] is None or interval["low"] is None or interval["high"] is None:
        return "–"
    mean, low, high = (
        f"{unit * number:,.{digits}f}" for number in (interval["mean"], interval["low"], interval["high"])
    )
    return f"{mean} ({low} to {high})"


def retrieval_table(result: RetrievalResult) -> Rows:
    """Search as a table with its header: a mode per line."""
    rows = [["search", *METRICS, "index s", "p50 ms", "p95 ms", "first s", "MiB"]]
    for mode in result["modes"]:
        speed, line = result["speed"][mode], result["summary"]["all"]["systems"][mode]
        costs = (speed["p50_ms"], speed["p95_ms"], speed["first_seconds"])
        indexed = "–" if speed["index_seconds"] is None else f"{speed['index_seconds']:,.1f}"
        shown = [indexed, *(f"{number:.1f}" for number in costs), f"{speed['memory_mib']:.0f}"]
        rows.append([mode, *(percent(line[metric]) for metric in METRICS), *shown])
    return rows


def methods_table(result: MethodsResult, metrics: Sequence[str]) -> Rows:
    """Return some metrics, a system per line; those without a value for any question are left out."""
    lines = result["summary"]["all"]["systems"]
    shown = [metric for metric in metrics if any(line[metric]["n"] for line in lines.values())]
    rows = [["system", *(NAMES[metric] for metric in shown)]]
    return rows + [[system, *(cell(metric, line[metric]) for metric in shown)] for system, line in lines.items()]


def group_table(groups: Mapping[str, Group], by: str, metrics: Iterable[str]) -> Rows:
    """Return some metrics in each group of questions, a system per line."""
    chosen = list(metrics)
    rows = [[by, "questions", "system", *(NAMES.get(metric, metric) for metric in chosen)]]
    for name, group in groups.items():
        for system, line in group["systems"].items():
            rows.append([name, str(group["questions"]), system, *(cell(metric, line[metric]) for metric in chosen)])
    return rows


def node_table(nodes: Mapping[str, Mapping[str, NodeMeans]]) -> Rows:
    """Return cost per question of each node."""
    rows = [["system", "node", "calls", "prompt tokens", "completion tokens", "model seconds"]]
    for system, own in nodes.items():
        for node, means in own.items():
            tokens = (f"{means['prompt_tokens']:,.0f}", f"{means['completion_tokens']:,.0f}")
            rows.append([system, node, f"{means['calls']:.2f}", *tokens, f"{means['model_seconds']:.2f}"])
    return rows


def difference_table(differences: Iterable[Difference]) -> Rows:
    """Return paired differences (shares in points), with the smallest difference that the questions can detect."""
    rows = [["comparison", "metric", "difference", "p", "questions", "detectable", "questions needed"]]
    for each in differences:
        shown = cell(each["metric"], Interval(mean=each["mean"], low=each["low"], high=each["high"], n=each["n"]))
        p = "–" if each["p"] is None else f"{each['p']:.4f}"
        unit = 1 if each["metric"] in COSTS else 100
        detectable = "–" if each["detectable"] is None else f"{unit * each['detectable']:,.1f}"
        needed = "–" if each["needed"] is None else f"{each['needed']:,}"
        name = NAMES.get(each["metric"], each["metric"])
        rows.append([f"{each['a']} − {each['b']}", name, shown, p, str(each["n"]), detectable, needed])
    return rows


SIMULATION = "Simulation: no language model answered. The replies of the roles are made from the gold answers."

DIFFERENCES = (
    "On the same questions, shares in points. “detectable” is the smallest true difference that these questions detect "
    "four times in five; “questions needed” is what the difference found would take."
)


def label(report: Mapping[str, Any]) -> str:
    """Return the label that must accompany the numbers; empty if real models answered every role."""
    if report.get("simulation"):
        return SIMULATION
    if parts := report.get("gold"):
        return (
            f"Partly gold: {', '.join(parts)}. These are taken from the gold, without error; the rest is the model's."
        )
    return ""


def _kind(report: Mapping[str, Any]) -> str:
    """Return the label in a word or two."""
    if report.get("simulation"):
        return "simulation"
    return "partly gold" if report.get("gold") else ""


def blocks(report: Mapping[str, Any], out: Path) -> list[Block]:
    """Return the whole report; `out` is the folder that holds the runs."""
    parts: list[Block] = [Heading(1, f"Evaluation ({kind})" if (kind := _kind(report)) else "Evaluation")]
    parts += [Paragraph(label(report), label=True)] if label(report) else []
    parts += [Paragraph(_about(report)), *(Paragraph(f"Note: {line}", label=True) for line in report["warnings"])]
    if methods := report.get("methods"):
        parts += _methods(report, methods, out)
    if retrieval := report.get("retrieval"):
        parts += _retrieval(retrieval)
    return [*parts, *_repeat(report)]


def _about(report: Mapping[str, Any]) -> str:
    data, chosen = report["data"], report["questions"]
    files = ", ".join(f"{file['set']} ({file['questions']})" for file in data["files"])
    collection = data["collection"]
    return (
        f"{chosen} questions, from {files}; collection “{collection['name']}” with {collection['documents']:,} "
        f"documents and {collection['passages']:,} passages. In brackets the {LEVEL:.0%} interval of {RESAMPLES:,} "
        "paired bootstrap samples over questions."
    )


def _methods(report: Mapping[str, Any], result: MethodsResult, out: Path) -> list[Block]:
    counted = result["summary"]["all"]["questions"]
    models = ", ".join(f"{role}: {name}" for role, name in report["models"].items())
    parts: list[Block] = [
        Heading(2, "Methods"),
        Paragraph(f"{result['runs']:,} runs, {counted} questions with a run of every system. Models: {models}."),
        Heading(3, "Quality"),
        Table(methods_table(result, QUALITY)),
        Paragraph(QUALITY_LEGEND),
        Heading(3, "Evidence"),
        Table(methods_table(result, EVIDENCE)),
        Paragraph(EVIDENCE_LEGEND),
        Heading(3, "Cost per question"),
        Table(methods_table(result, COST)),
        Paragraph("Tokens are prompt and completion together; cached ones count in full."),
        *(plots.draw_pictures(result, label=_kind(report)) if counted else ()),
    ]
    for by, groups in result["summary"]["by"].items():
        parts += [Heading(3, f"By {by}"), Table(group_table(groups, by, ("f1", "em", "refused", "all_shown", "calls")))]
    if result["summary"]["differences"]:
        differences = difference_table(result["summary"]["differences"])
        parts += [Heading(3, "Differences"), Paragraph(DIFFERENCES), Table(differences)]
    parts += [Heading(3, "Cost per question by node"), Table(node_table(result["nodes"]))]
    return [*parts, *_failures(result["failures"], out)]


QUALITY_LEGEND = (
    "EM, F1: as in SQuAD 2.0, over all aliases; a refusal is an empty answer, right only if there is no answer. "
    "Contained: the answer contains a right one. CRAG score: +1 right, 0 refused, −1 wrong, as percent."
)
EVIDENCE_LEGEND = (
    "Support: answers with a citation of a gold passage. Answer quoted: answers, other than yes and no, that a "
    "citation contains verbatim. Gold shown: the share of gold passages that were in any prompt of the run."
)


def _failures(failures: list[Failure], out: Path) -> list[Block]:
    if not failures:
        return []
    rows = [["system", "question", "expected", "said", "gold shown", "thread"]]
    for each in failures:
        said = each["problem"] or (
            each["said"] if each["status"] == "answered" else f"({each['status']}) {each['said']}"
        )
        expected = " / ".join(each["expected"][:3]) or "(no answer)"
        rows.append([each["system"], each["asked"], expected, said.strip(), each["gold_shown"], each["thread"]])
    return [
        Heading(3, "Failures to read"),
        Paragraph("Each run can be opened by its thread; the question's id is in report.json."),
        Code("\n".join(open_commands("THREAD", out))),
        Table(rows),
    ]


def open_commands(thread: str, out: Path) -> list[str]:
    """Return commands that show a run of the evaluation in `out`."""
    store = f"SLEUTH_RUNS={shlex.quote(str(out))}"
    return [f"{store} sleuth runs {command} {thread}" for command in ("show", "history", "export")]


def _retrieval(result: RetrievalResult) -> list[Block]:
    summary = result["summary"]
    parts: list[Block] = [
        Heading(2, "Search"),
        Paragraph(
            f"{summary['all']['questions']} questions that name their gold passages; shares in percent. “index s” is "
            "how long the indexes that a mode needs have worked in all, “first s” the first search with all that it "
            "loads, MiB the memory of the whole process after the mode's searches (modes come one after the other)."
        ),
        Table(retrieval_table(result)),
    ]
    for by, groups in summary["by"].items():
        parts += [Heading(3, f"Search by {by}"), Table(group_table(groups, by, METRICS))]
    if summary["differences"]:
        differences = difference_table(summary["differences"])
        parts += [Heading(3, "Differences in search"), Paragraph(DIFFERENCES), Table(differences)]
    return parts


def _repeat(report: Mapping[str, Any]) -> list[Block]:
    hashes = [f"{file['set']}: {file['sha256']}" for file in report["data"]["files"]]
    hashes.append(f"collection: {report['data']['collection']['sha256']}")
    packages = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    simulated = [Paragraph(f"Simulation: {json.dumps(report['simulation'])}")] if report["simulation"] else []
    return [
        Heading(2, "To repeat it"),
        Code(report["command"]),
        Paragraph(f"Seed {report['seed']}. Versions: {packages}. All settings and prompt hashes are in report.json."),
        *simulated,
        Paragraph("SHA-256 of the data: " + "; ".join(hashes) + "."),
    ]
