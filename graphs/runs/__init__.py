"""Durable execution: start, resume, fork, inspect and prune runs."""
