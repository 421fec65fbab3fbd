"""A small model tuned for all roles: examples from simulated runs over training questions, and the tuning itself."""
