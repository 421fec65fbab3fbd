"""Execution of an evaluation: models, jobs and the output folder."""

from sleuth.studio.evaluation.running.harness import Harness, make_jobs
from sleuth.studio.evaluation.running.models import (
    EvaluationModels,
    KnownGold,
    open_served_models,
    open_simulated_models,
)
from sleuth.studio.evaluation.running.run_folder import PLAN, REPORT, RunFolder, open_folder, read_json

__all__ = [
    "PLAN",
    "REPORT",
    "EvaluationModels",
    "Harness",
    "KnownGold",
    "RunFolder",
    "make_jobs",
    "open_folder",
    "open_served_models",
    "open_simulated_models",
    "read_json",
]
