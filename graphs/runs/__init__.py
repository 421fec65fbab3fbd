"""Durable execution: start, resume, fork, inspect and prune runs."""

from sleuth.graphs.runs.execution import NO_LIMIT, compiled
from sleuth.graphs.runs.history import Moment, export, fork, happened
from sleuth.graphs.runs.pruning import Preview, Pruned, make_whole, preview, prune, remove
from sleuth.graphs.runs.service import MAX_QUESTION, Runs, Services, check_question, now
from sleuth.graphs.runs.subruns import SaverHops

__all__ = [
    "MAX_QUESTION",
    "NO_LIMIT",
    "Moment",
    "Preview",
    "Pruned",
    "Runs",
    "SaverHops",
    "Services",
    "check_question",
    "compiled",
    "export",
    "fork",
    "happened",
    "make_whole",
    "now",
    "preview",
    "prune",
    "remove",
]
