"""Tools for clients of the Model Context Protocol."""

from sleuth.studio.mcp.backend import Events, LocalBackend

__all__ = ["Events", "LocalBackend"]
