"""Execution of an evaluation: models, jobs and the output folder."""

from sleuth.studio.evaluation.running.harness import Harness, jobs
from sleuth.studio.evaluation.running.models import Known, Models, served, simulated
from sleuth.studio.evaluation.running.run_folder import PLAN, REPORT, Folder, open_folder, read_json

__all__ = [
    "PLAN",
    "REPORT",
    "Folder",
    "Harness",
    "Known",
    "Models",
    "jobs",
    "open_folder",
    "read_json",
    "served",
    "simulated",
]
