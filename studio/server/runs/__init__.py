"""Runs of the server: worker, event log."""
