"""State, context, budget and answer of a run, and the `@node` decorator."""

from sleuth.graphs.core.answer import (
    Answer,
    Citation,
    Cost,
    Graph,
    Note,
    Status,
    Subrun,
    Support,
    Threshold,
    Verdict,
    is_weak,
    make_verdict,
    public_notes,
    total_cost,
    upgrade_cost,
)
from sleuth.graphs.core.context import (
    Budget,
    CheckedSettings,
    Context,
    MethodSettings,
    OnStep,
    SubrunRequest,
    SubrunResult,
)
from sleuth.graphs.core.events import Delta, Event, Reset, Step, parse_event
from sleuth.graphs.core.fidelity import PaperPart
from sleuth.graphs.core.method import Method, describe_errors
from sleuth.graphs.core.node import Call, ask_or
from sleuth.graphs.core.private_graph import PrivateCompiled, PrivateGraph
from sleuth.graphs.core.state import (
    SCHEMA_VERSION,
    Question,
    RunState,
    RunUpdate,
    find_hashes,
    merge_keys,
    same_question,
)
from sleuth.graphs.core.subrun import in_fresh_context, new_subrun, verdict_of
from sleuth.graphs.core.thresholds import fitted_thresholds, store_threshold
from sleuth.graphs.core.wall_clock import seconds_at, with_clock, with_paused_clock

__all__ = [
    "SCHEMA_VERSION",
    "Answer",
    "Budget",
    "Call",
    "CheckedSettings",
    "Citation",
    "Context",
    "Cost",
    "Delta",
    "Event",
    "Graph",
    "Method",
    "MethodSettings",
    "Note",
    "OnStep",
    "PaperPart",
    "PrivateCompiled",
    "PrivateGraph",
    "Question",
    "Reset",
    "RunState",
    "RunUpdate",
    "Status",
    "Step",
    "Subrun",
    "SubrunRequest",
    "SubrunResult",
    "Support",
    "Threshold",
    "Verdict",
    "ask_or",
    "describe_errors",
    "find_hashes",
    "fitted_thresholds",
    "in_fresh_context",
    "is_weak",
    "make_verdict",
    "merge_keys",
    "new_subrun",
    "parse_event",
    "public_notes",
    "same_question",
    "seconds_at",
    "store_threshold",
    "total_cost",
    "upgrade_cost",
    "verdict_of",
    "with_clock",
    "with_paused_clock",
]
