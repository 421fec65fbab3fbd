"""Comparison of two evaluations: the same systems on the questions that both contain."""

from pathlib import Path

from typing_extensions import TypedDict

from sleuth.studio.evaluation.reporting.blocks import align_columns
from sleuth.studio.evaluation.reporting.report import difference_table, label
from sleuth.studio.evaluation.running import PLAN, REPORT, read_json
from sleuth.studio.evaluation.scoring import COMPARED, Difference, SystemScores, difference, read_found, read_scores
from sleuth.studio.evaluation.scoring.retrieval import COMPARED as SEARCH_COMPARED
from sleuth.tools.errors import UsageError


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
    found = [*_differences(runs, COMPARED, seed), *_differences(searches, SEARCH_COMPARED, seed)]
    if not found:
        raise UsageError(f"{a} and {b} have no question in common that the same method or search was asked.")
    return Comparison(
        a=str(a),
        b=str(b),
        differing=sorted(key for key in {*plans[0], *plans[1]} if plans[0].get(key) != plans[1].get(key)),
        simulation=any(bool(report["simulation"]) for report in reports),
        labels=[f"{side}: {said}" for side, report in zip("ab", reports, strict=True) if (said := label(report))],
        differences=found,
    )


def comparison_table(found: Comparison) -> str:
    """Return the comparison for a terminal."""
    what = f"b = {found['b']}, a = {found['a']}; the two differ in: {', '.join(found['differing']) or 'nothing'}"
    return "\n".join([what, *found["labels"], align_columns(difference_table(found["differences"]))])


def _differences(sides: list[dict[str, SystemScores]], metrics: tuple[str, ...], seed: int) -> list[Difference]:
    before, after = sides
    pairs = [(name, name) for name in after if name in before]
    if not pairs and len(before) == len(after) == 1:
        pairs = [(next(iter(before)), next(iter(after)))]
    made = [_difference(before[a], after[b], (a, b), metric, seed) for a, b in pairs for metric in metrics]
    return [each for each in made if each["n"]]


def _difference(
    before: SystemScores, after: SystemScores, names: tuple[str, str], metric: str, seed: int
) -> Difference:
    common = [key for key in after if key in before]
    both = [(after[key].get(metric), before[key].get(metric)) for key in common]
    values = [(new, old) for new, old in both if new is not None and old is not None]
    return difference(f"b: {names[1]}", f"a: {names[0]}", metric, values, seed=seed)
