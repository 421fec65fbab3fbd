"""Escalation: start with a cheap method and continue with a stronger one if its answer is rejected."""
