"""Terminal output: tables, live runs and search results.

The views of runs, which import all methods, are in `run_view`.
"""

from sleuth.studio.console.output import (
    JsonOption,
    Listing,
    Report,
    activity,
    counted,
    emit,
    progress_bars,
    progress_console,
)
from sleuth.studio.console.search_view import explanation_lines

__all__ = [
    "JsonOption",
    "Listing",
    "Report",
    "activity",
    "counted",
    "emit",
    "explanation_lines",
    "progress_bars",
    "progress_console",
]
