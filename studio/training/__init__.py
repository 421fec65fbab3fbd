"""Training of what the package carries."""
