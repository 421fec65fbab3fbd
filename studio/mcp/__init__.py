"""sleuth as tools of any client of the Model Context Protocol."""

from sleuth.studio.mcp.backend import Asked, Events, Local

__all__ = ["Asked", "Events", "Local"]
