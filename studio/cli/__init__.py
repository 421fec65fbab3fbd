"""The command line `sleuth`."""

from sleuth.studio.cli.app import main

__all__ = ["main"]
