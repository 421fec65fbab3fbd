"""Escalation: start with a cheap method and continue with a stronger one if its answer is rejected."""

from sleuth.graphs.methods.auto.escalation import new_hop

__all__ = ["new_hop"]
