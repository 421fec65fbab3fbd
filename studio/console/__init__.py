"""Terminal output: tables, live runs and search results."""

from sleuth.studio.console.output import JsonOption, Listing, Report, activity, counted, emit, progress_console
from sleuth.studio.console.run_view import answer_view, graph_view, sources_view, watch
from sleuth.studio.console.search_view import explanation_lines

__all__ = [
    "JsonOption",
    "Listing",
    "Report",
    "activity",
    "answer_view",
    "counted",
    "emit",
    "explanation_lines",
    "graph_view",
    "progress_console",
    "sources_view",
    "watch",
]
