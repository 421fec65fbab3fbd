"""Tools for clients of the Model Context Protocol."""

from sleuth.studio.mcp.backend import AskRequest, Events, LocalBackend

__all__ = ["AskRequest", "Events", "LocalBackend"]
