"""Durable execution: start, resume, fork, inspect and prune runs."""

from sleuth.graphs.runs.execution import RECURSION_LIMIT, compile_method, now, uncheckpointed
from sleuth.graphs.runs.history import CheckpointView, export_run, fork_run, load_checkpoint, replay_steps
from sleuth.graphs.runs.pruning import PrunePreview, PruneReport, preview_prune, prune, remove_runs
from sleuth.graphs.runs.service import MAX_QUESTION, RunService, Services, check_question
from sleuth.graphs.runs.subruns import CheckpointerSubruns

__all__ = [
    "MAX_QUESTION",
    "RECURSION_LIMIT",
    "CheckpointView",
    "CheckpointerSubruns",
    "PrunePreview",
    "PruneReport",
    "RunService",
    "Services",
    "check_question",
    "compile_method",
    "export_run",
    "fork_run",
    "load_checkpoint",
    "now",
    "preview_prune",
    "prune",
    "remove_runs",
    "replay_steps",
    "uncheckpointed",
]
