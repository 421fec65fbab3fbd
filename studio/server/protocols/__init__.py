"""Encoders of a run's events, one module per protocol."""
