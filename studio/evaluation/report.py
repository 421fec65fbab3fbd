"""The report: what was evaluated, the tables, what to read, and how to repeat it."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sleuth.studio.evaluation.reporting import Page, draw_costs
from sleuth.studio.evaluation.results import (
    COMPARED,
    COST,
    EVIDENCE,
    METRICS,
    QUALITY,
    read_scores,
)
from sleuth.studio.evaluation.retrieval import COMPARED as SEARCH_COMPARED
from sleuth.studio.evaluation.retrieval import METRICS as SEARCH_METRICS
from sleuth.studio.evaluation.retrieval import read_found
from sleuth.studio.evaluation.run_folder import PLAN, REPORT, read_json
from sleuth.studio.evaluation.scoring import (
    LEVEL,
    RESAMPLES,
    Difference,
    Interval,
    SystemScores,
    difference,
    paired,
)
from sleuth.tools.errors import UsageError

Rows = list[list[str]]


def _heading(metric: str) -> str:
    return METRICS[metric][0] if metric in METRICS else metric


def cell(metric: str, interval: Interval) -> str:
    """Return a mean with its interval: a share in percent, or an amount, without decimals where it is large."""
    if interval["mean"] is None or interval["low"] is None or interval["high"] is None:
        return "–"
    unit, digits = (1, 0 if interval["mean"] >= 100 else 2) if metric in COST else (100, 1)
    mean, low, high = (
        f"{unit * number:,.{digits}f}" for number in (interval["mean"], interval["low"], interval["high"])
    )
    return f"{mean} ({low} to {high})"


def retrieval_table(result: Mapping[str, Any]) -> Rows:
    """Search as a table with its header: a mode per line."""
    rows = [["search", *SEARCH_METRICS, "p50 ms", "p95 ms", "first s", "MiB"]]
    for mode in result["modes"]:
        speed, line = result["speed"][mode], result["summary"]["all"]["systems"][mode]
        costs = (speed["p50_ms"], speed["p95_ms"], speed["first_seconds"])
        shown = [*(f"{number:.1f}" for number in costs), f"{speed['memory_mib']:.0f}"]
        rows.append([mode, *(cell(metric, line[metric]) for metric in SEARCH_METRICS), *shown])
    return rows


def methods_table(result: Mapping[str, Any], metrics: Iterable[str]) -> Rows:
    """Return some metrics, a system per line; those without a value for any question are left out."""
    lines = result["summary"]["all"]["systems"]
    shown = [metric for metric in metrics if any(line[metric]["n"] for line in lines.values())]
    rows = [["system", *(_heading(metric) for metric in shown)]]
    return rows + [[system, *(cell(metric, line[metric]) for metric in shown)] for system, line in lines.items()]


def group_table(groups: Mapping[str, Mapping[str, Any]], by: str, metrics: Sequence[str]) -> Rows:
    """Return some metrics in each group of questions, a system per line."""
    rows = [[by, "questions", "system", *map(_heading, metrics)]]
    for name, group in groups.items():
        for system, line in group["systems"].items():
            rows.append([name, str(group["questions"]), system, *(cell(metric, line[metric]) for metric in metrics)])
    return rows


def node_table(nodes: Mapping[str, Mapping[str, Mapping[str, float]]]) -> Rows:
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
        unit = 1 if each["metric"] in COST else 100
        detectable = "–" if each["detectable"] is None else f"{unit * each['detectable']:,.1f}"
        needed = "–" if each["needed"] is None else f"{each['needed']:,}"
        rows.append(
            [f"{each['a']} − {each['b']}", _heading(each["metric"]), shown, p, str(each["n"]), detectable, needed]
        )
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


def write_page(report: Mapping[str, Any], out: Path) -> Page:
    """Return the whole report; `out` is the folder that holds the runs."""
    page = Page(f"Evaluation ({kind})" if (kind := _kind(report)) else "Evaluation")
    if label(report):
        page.label(label(report))
    page.paragraph(_about(report))
    for line in report["warnings"]:
        page.label(f"Note: {line}")
    if methods := report.get("methods"):
        _add_methods(page, report, methods, out)
    if retrieval := report.get("retrieval"):
        _add_search(page, retrieval)
    _add_origin(page, report)
    return page


def _about(report: Mapping[str, Any]) -> str:
    data, chosen = report["data"], report["questions"]
    files = ", ".join(f"{file['set']} ({file['questions']})" for file in data["files"])
    collection = data["collection"]
    return (
        f"{chosen} questions, from {files}; collection “{collection['name']}” with {collection['documents']:,} "
        f"documents and {collection['passages']:,} passages. In brackets the {LEVEL:.0%} interval of {RESAMPLES:,} "
        "paired bootstrap samples over questions."
    )


def _add_methods(page: Page, report: Mapping[str, Any], result: Mapping[str, Any], out: Path) -> None:
    counted = result["summary"]["all"]["questions"]
    models = ", ".join(f"{role}: {name}" for role, name in report["models"].items())
    page.heading(2, "Methods")
    for at, line in enumerate(verdict(result)):
        (page.paragraph if at else page.label)(line)
    page.paragraph(f"{result['runs']:,} runs, {counted} questions with a run of every system. Models: {models}.")
    for title, metrics in (("Quality", QUALITY), ("Evidence", EVIDENCE), ("Cost per question", COST)):
        page.heading(3, title)
        page.table(methods_table(result, metrics))
        page.paragraph(" ".join(f"{heading}: {meaning}" for heading, meaning in metrics.values()))
    if counted:
        lines = result["summary"]["all"]["systems"]
        title = "F1 against tokens per question: up and left is better."
        page.picture(title, draw_costs(lines, _kind(report)))
    for by, groups in result["summary"]["by"].items():
        page.heading(3, f"By {by}")
        page.table(group_table(groups, by, ("f1", "em", "refused", "all_shown", "calls")))
    _add_differences(page, result["summary"], "Differences")
    page.heading(3, "Cost per question by node")
    page.table(node_table(result["nodes"]))
    _add_failures(page, result["failures"], out)
    answers = result["answers"]
    page.folded_table(f"All {len(answers):,} answers with the gold answers", _answer_table(answers))


def verdict(result: Mapping[str, Any]) -> list[str]:
    """Return in words which system has the best F1 and its cost, then how the others compare with it."""
    lines = result["summary"]["all"]["systems"]
    scored = {name: line["f1"]["mean"] or 0.0 for name, line in lines.items() if line["f1"]["n"]}
    if not scored:
        return []
    best = min(scored, key=lambda name: (-scored[name], lines[name]["tokens"]["mean"] or 0.0))
    costs = f"{lines[best]['calls']['mean'] or 0:,.1f} calls and {lines[best]['tokens']['mean'] or 0:,.0f} tokens"
    highest = "has the highest F1," if len(scored) > 1 else "has an F1 of"
    said = [f"{best} {highest} {cell('f1', lines[best]['f1'])} percent, for {costs} per question."]
    pairs = {(each["a"], each["b"]): each for each in result["summary"]["differences"] if each["metric"] == "f1"}
    others = sorted(scored.keys() - {best}, key=lambda name: (-scored[name], name))
    compared = ((name, pairs.get((best, name)) or pairs.get((name, best))) for name in others)
    return [*said, *(f"{name}: {_in_words(found)}" for name, found in compared if found)]


def _in_words(found: Difference) -> str:
    if found["mean"] is None or found["low"] is None or found["high"] is None:
        return "not comparable."
    if not found["mean"]:
        return "the same F1."
    less = f"{abs(100 * found['mean']):.1f} points less F1"
    if found["low"] > 0 or found["high"] < 0:
        return f"{less}, which chance does not explain."
    needed = f"; about {found['needed']:,} questions would show it" if found["needed"] else ""
    return f"{less}, which may be chance{needed}."


def _answer_table(answers: Iterable[Mapping[str, Any]]) -> Rows:
    """Return answers next to the gold ones."""
    rows = [["system", "question", "gold answer", "answer", "status", "F1", "gold shown", "thread"]]
    for each in answers:
        gold = " / ".join(each["expected"][:3]) or "(no answer)"
        f1 = "–" if each["f1"] is None else f"{100 * each['f1']:.0f}"
        said = (each["problem"] or each["said"]).strip()
        rows.append([each["system"], each["asked"], gold, said, each["status"], f1, each["gold_shown"], each["thread"]])
    return rows


def _add_failures(page: Page, failures: Sequence[Mapping[str, Any]], out: Path) -> None:
    if not failures:
        return
    store = f"SLEUTH_RUNS={shlex.quote(str(out))}"
    page.heading(3, "Failures to read")
    page.paragraph("Each run can be opened by its thread; the question's id is in report.json.")
    page.code("\n".join(f"{store} sleuth runs {command} THREAD" for command in ("show", "history", "export")))
    page.table(_answer_table(failures))


def _add_search(page: Page, result: Mapping[str, Any]) -> None:
    page.heading(2, "Search")
    page.paragraph(
        f"{result['summary']['all']['questions']} questions that name their gold passages; shares in percent. "
        "“first s” is the first search with all that it loads, MiB the memory of the whole process after the mode's "
        "searches (modes come one after the other)."
    )
    page.table(retrieval_table(result))
    for by, groups in result["summary"]["by"].items():
        page.heading(3, f"Search by {by}")
        page.table(group_table(groups, by, SEARCH_METRICS))
    _add_differences(page, result["summary"], "Differences in search")


def _add_differences(page: Page, summary: Mapping[str, Any], heading: str) -> None:
    if summary["differences"]:
        page.heading(3, heading)
        page.paragraph(DIFFERENCES)
        page.table(difference_table(summary["differences"]))


def _add_origin(page: Page, report: Mapping[str, Any]) -> None:
    hashes = [f"{file['set']}: {file['sha256']}" for file in report["data"]["files"]]
    hashes.append(f"collection: {report['data']['collection']['sha256']}")
    packages = ", ".join(f"{name} {number}" for name, number in report["versions"].items())
    page.heading(2, "To repeat it")
    page.code(report["command"])
    page.paragraph(f"Seed {report['seed']}. Versions: {packages}. All settings and prompt hashes are in report.json.")
    if report["simulation"]:
        page.paragraph(f"Simulation: {json.dumps(report['simulation'])}")
    page.paragraph("SHA-256 of the data: " + "; ".join(hashes) + ".")


def compare(a: Path, b: Path) -> dict[str, Any]:
    """Return the differences between two evaluations, b minus a.

    The systems and search modes that both folders have are paired, or the only one of each. `labels` must be shown
    wherever the numbers are; with `simulation`, one of the two is simulated.

    Raises:
        UsageError: a folder without a report, or nothing that both have.
    """
    plans = [read_json(folder / PLAN) for folder in (a, b)]
    reports = [read_json(folder / REPORT) for folder in (a, b)]
    runs, searches = [read_scores(folder) for folder in (a, b)], [read_found(folder) for folder in (a, b)]
    seed = int(reports[0]["seed"])
    found = [*_comparisons(runs, COMPARED, seed), *_comparisons(searches, SEARCH_COMPARED, seed)]
    if not found:
        raise UsageError(f"{a} and {b} have no question in common that the same method or search was asked.")
    return {
        "a": str(a),
        "b": str(b),
        "differing": sorted(key for key in {*plans[0], *plans[1]} if plans[0].get(key) != plans[1].get(key)),
        "simulation": any(bool(report["simulation"]) for report in reports),
        "labels": [f"{side}: {text}" for side, report in zip("ab", reports, strict=True) if (text := label(report))],
        "differences": found,
    }


def _comparisons(sides: list[dict[str, SystemScores]], metrics: tuple[str, ...], seed: int) -> list[Difference]:
    before, after = sides
    pairs = [(name, name) for name in after if name in before]
    if not pairs and len(before) == len(after) == 1:
        pairs = [(next(iter(before)), next(iter(after)))]
    made = [
        difference(f"b: {b}", f"a: {a}", metric, paired(after[b], before[a], metric), seed=seed)
        for a, b in pairs
        for metric in metrics
    ]
    return [each for each in made if each["n"]]
