"""Training examples for the roles."""
