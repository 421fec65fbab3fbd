"""Training of what the package ships, outside the package: `python -m training.NAME` from a clone."""
