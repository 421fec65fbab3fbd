"""The Python API: open a home, ask, stream, resume."""
