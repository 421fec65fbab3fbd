"""The command line."""

from sleuth.studio.cli.app import main

__all__ = ["main"]
