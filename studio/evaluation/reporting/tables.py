"""Summaries as rows of text."""

from collections.abc import Iterable, Mapping, Sequence

from sleuth.studio.evaluation.scoring import (
    METRICS,
    Difference,
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
    """A share in percent with its interval."""
    return _shown(interval, 100, 1)


def amount(interval: Interval) -> str:
    """A number per question with its interval; without decimals where it is large."""
    return _shown(interval, 1, 0 if (interval["mean"] or 0) >= 100 else 2)


def cell(metric: str, interval: Interval) -> str:
    """As the metric is read."""
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
    """Some metrics, a system per line; those that say nothing about any question are left out."""
    lines = result["summary"]["all"]["systems"]
    told = [metric for metric in metrics if any(line[metric]["n"] for line in lines.values())]
    rows = [["system", *(NAMES[metric] for metric in told)]]
    return rows + [[system, *(cell(metric, line[metric]) for metric in told)] for system, line in lines.items()]


def group_table(groups: Mapping[str, Group], by: str, metrics: Iterable[str]) -> Rows:
    """Some metrics in each group of questions, a system per line."""
    chosen = list(metrics)
    rows = [[by, "questions", "system", *(NAMES.get(metric, metric) for metric in chosen)]]
    for name, group in groups.items():
        for system, line in group["systems"].items():
            rows.append([name, str(group["questions"]), system, *(cell(metric, line[metric]) for metric in chosen)])
    return rows


def node_table(nodes: Mapping[str, Mapping[str, NodeMeans]]) -> Rows:
    """Cost per question of each node."""
    rows = [["system", "node", "calls", "prompt tokens", "completion tokens", "model seconds"]]
    for system, own in nodes.items():
        for node, means in own.items():
            tokens = (f"{means['prompt_tokens']:,.0f}", f"{means['completion_tokens']:,.0f}")
            rows.append([system, node, f"{means['calls']:.2f}", *tokens, f"{means['model_seconds']:.2f}"])
    return rows


def difference_table(differences: Iterable[Difference]) -> Rows:
    """Paired differences (shares in points), with what so many questions can show at all."""
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
