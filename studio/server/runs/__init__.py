"""Runs of the server: worker, queue, event log, live streams, conversations."""
