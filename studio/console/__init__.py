"""Terminal output: tables, live runs and search results.

The views of runs, which import all methods, are in `run_view`.
"""
