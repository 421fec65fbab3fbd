"""Runs of the server: worker, queue, event log, conversations."""
