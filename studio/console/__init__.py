"""Terminal output: tables, live runs and search results.

The views of runs, which import all methods, are in `run_view`.
"""

from sleuth.studio.console.output import (
    Formats,
    JsonOption,
    Listing,
    Report,
    activity,
    counted,
    emit,
    format_of,
    progress_bars,
    progress_console,
    save,
)
from sleuth.studio.console.search_view import explanation_lines

__all__ = [
    "Formats",
    "JsonOption",
    "Listing",
    "Report",
    "activity",
    "counted",
    "emit",
    "explanation_lines",
    "format_of",
    "progress_bars",
    "progress_console",
    "save",
]
