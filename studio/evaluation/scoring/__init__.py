"""Metrics, judging, statistics and budgets of evaluations."""

from sleuth.studio.evaluation.scoring.budget import BudgetSpent, EvaluationBudget, MeteredModel
from sleuth.studio.evaluation.scoring.judging import judge_all
from sleuth.studio.evaluation.scoring.metrics import answer_scores, contained, exact_match, f1
from sleuth.studio.evaluation.scoring.results import Result, Results, open_results, read_scores, scores
from sleuth.studio.evaluation.scoring.retrieval import (
    FOUND,
    METRICS,
    RetrievalResult,
    SearchSystem,
    measure_search,
    open_search_systems,
    read_found,
)
from sleuth.studio.evaluation.scoring.statistics import (
    LEVEL,
    RESAMPLES,
    Difference,
    Interval,
    SystemScores,
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
    "BudgetSpent",
    "Difference",
    "EvaluationBudget",
    "Failure",
    "Group",
    "Interval",
    "MeteredModel",
    "MethodsResult",
    "NodeMeans",
    "Result",
    "Results",
    "RetrievalResult",
    "SearchSystem",
    "SystemScores",
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
    "open_search_systems",
    "read_found",
    "read_scores",
    "scores",
]
