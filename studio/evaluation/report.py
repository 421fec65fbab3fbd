"""The report: what was evaluated, the tables, what to read, and how to repeat it."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

from sleuth.studio.evaluation.reporting import Page, align_columns, draw_pictures
from sleuth.studio.evaluation.results import (
    COMPARED,
    COST,
    EVIDENCE,
    METRICS,
    QUALITY,
    Failure,
    MethodsResult,
    NodeMeans,
    read_scores,
)
from sleuth.studio.evaluation.retrieval import COMPARED as SEARCH_COMPARED
from sleuth.studio.evaluation.retrieval import METRICS as SEARCH_METRICS
from sleuth.studio.evaluation.retrieval import RetrievalResult, read_found
from sleuth.studio.evaluation.run_folder import PLAN, REPORT, read_json
from sleuth.studio.evaluation.scoring import (
    LEVEL,
    RESAMPLES,
    Difference,
    Group,
    Interval,
    Summary,
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


def retrieval_table(result: RetrievalResult) -> Rows:
    """Search as a table with its header: a mode per line."""
    rows = [["search", *SEARCH_METRICS, "p50 ms", "p95 ms", "first s", "MiB"]]
    for mode in result["modes"]:
        speed, line = result["speed"][mode], result["summary"]["all"]["systems"][mode]
        costs = (speed["p50_ms"], speed["p95_ms"], speed["first_seconds"])
        shown = [*(f"{number:.1f}" for number in costs), f"{speed['memory_mib']:.0f}"]
        rows.append([mode, *(cell(metric, line[metric]) for metric in SEARCH_METRICS), *shown])
    return rows


def methods_table(result: MethodsResult, metrics: Iterable[str]) -> Rows:
    """Return some metrics, a system per line; those without a value for any question are left out."""
    lines = result["summary"]["all"]["systems"]
    shown = [metric for metric in metrics if any(line[metric]["n"] for line in lines.values())]
    rows = [["system", *(_heading(metric) for metric in shown)]]
    return rows + [[system, *(cell(metric, line[metric]) for metric in shown)] for system, line in lines.items()]


def group_table(groups: Mapping[str, Group], by: str, metrics: Sequence[str]) -> Rows:
    """Return some metrics in each group of questions, a system per line."""
    rows = [[by, "questions", "system", *map(_heading, metrics)]]
    for name, group in groups.items():
        for system, line in group["systems"].items():
            rows.append([name, str(group["questions"]), system, *(cell(metric, line[metric]) for metric in metrics)])
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


def _add_methods(page: Page, report: Mapping[str, Any], result: MethodsResult, out: Path) -> None:
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
        draw_pictures(page, result, label=_kind(report))
    for by, groups in result["summary"]["by"].items():
        page.heading(3, f"By {by}")
        page.table(group_table(groups, by, ("f1", "em", "refused", "all_shown", "calls")))
    _add_differences(page, result["summary"], "Differences")
    page.heading(3, "Cost per question by node")
    page.table(node_table(result["nodes"]))
    _add_failures(page, result["failures"], out)
    if answers := result.get("answers"):
        _add_answers(page, answers)


def verdict(result: MethodsResult) -> list[str]:
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


def _add_answers(page: Page, answers: list[Failure]) -> None:
    rows = [["question", "gold answer", "system", "answer", "status", "F1", "thread"]]
    for each in answers:
        gold = " / ".join(each["expected"][:3]) or "(no answer)"
        f1 = each.get("f1")
        shown = "–" if f1 is None else f"{100 * f1:.0f}"
        said = each["problem"] or each["said"]
        rows.append([each["asked"], gold, each["system"], said.strip(), each["status"], shown, each["thread"]])
    page.folded_table(f"All {len(answers):,} answers with the gold answers", rows)


def _add_failures(page: Page, failures: list[Failure], out: Path) -> None:
    if not failures:
        return
    rows = [["system", "question", "expected", "said", "gold shown", "thread"]]
    for each in failures:
        said = each["problem"] or (
            each["said"] if each["status"] == "answered" else f"({each['status']}) {each['said']}"
        )
        expected = " / ".join(each["expected"][:3]) or "(no answer)"
        rows.append([each["system"], each["asked"], expected, said.strip(), each["gold_shown"], each["thread"]])
    store = f"SLEUTH_RUNS={shlex.quote(str(out))}"
    page.heading(3, "Failures to read")
    page.paragraph("Each run can be opened by its thread; the question's id is in report.json.")
    page.code("\n".join(f"{store} sleuth runs {command} THREAD" for command in ("show", "history", "export")))
    page.table(rows)


def _add_search(page: Page, result: RetrievalResult) -> None:
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


def _add_differences(page: Page, summary: Summary, heading: str) -> None:
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


class Comparison(TypedDict):
    """Differences between two evaluations: b minus a.

    `simulation`: one of them is simulated; `labels` must be shown wherever the numbers of a or b are.
    """

    a: str
    b: str
    differing: list[str]
    simulation: bool
    labels: list[str]
    differences: list[Difference]


def compare(a: Path, b: Path) -> Comparison:
    """Pair the systems and search modes that both folders have, or the only one of each.

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
    return Comparison(
        a=str(a),
        b=str(b),
        differing=sorted(key for key in {*plans[0], *plans[1]} if plans[0].get(key) != plans[1].get(key)),
        simulation=any(bool(report["simulation"]) for report in reports),
        labels=[f"{side}: {text}" for side, report in zip("ab", reports, strict=True) if (text := label(report))],
        differences=found,
    )


def comparison_table(found: Comparison) -> str:
    """Return the comparison for a terminal."""
    what = f"b = {found['b']}, a = {found['a']}; the two differ in: {', '.join(found['differing']) or 'nothing'}"
    return "\n".join([what, *found["labels"], align_columns(difference_table(found["differences"]))])


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
