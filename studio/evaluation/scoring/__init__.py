"""Metrics, judging, statistics and budgets of evaluations."""

from sleuth.studio.evaluation.scoring.budget import Allowance, AllowanceSpent, Metered
from sleuth.studio.evaluation.scoring.judging import judge_all
from sleuth.studio.evaluation.scoring.metrics import answer_scores, contained, exact_match, f1
from sleuth.studio.evaluation.scoring.results import Result, Results, open_results, read_scores, scores
from sleuth.studio.evaluation.scoring.retrieval import (
    FOUND,
    METRICS,
    RetrievalResult,
    Searching,
    measure_search,
    read_found,
    searching,
)
from sleuth.studio.evaluation.scoring.statistics import (
    LEVEL,
    RESAMPLES,
    Difference,
    Interval,
    Own,
    difference,
    interval,
)
from sleuth.studio.evaluation.scoring.summary import (
    COMPARED,
    COST,
    EVIDENCE,
    QUALITY,
    Failure,
    Group,
    MethodsResult,
    NodeMeans,
    methods_result,
)

__all__ = [
    "COMPARED",
    "COST",
    "EVIDENCE",
    "FOUND",
    "LEVEL",
    "METRICS",
    "QUALITY",
    "RESAMPLES",
    "Allowance",
    "AllowanceSpent",
    "Difference",
    "Failure",
    "Group",
    "Interval",
    "Metered",
    "MethodsResult",
    "NodeMeans",
    "Own",
    "Result",
    "Results",
    "RetrievalResult",
    "Searching",
    "answer_scores",
    "contained",
    "difference",
    "exact_match",
    "f1",
    "interval",
    "judge_all",
    "measure_search",
    "methods_result",
    "open_results",
    "read_found",
    "read_scores",
    "scores",
    "searching",
]
