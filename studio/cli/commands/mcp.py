"""`sleuth mcp`."""

import asyncio

from sleuth.studio.mcp import Local
from sleuth.studio.memory import share_arenas
from sleuth.tools.optional_imports import extra
from sleuth.tools.settings import Settings


def mcp() -> None:
    """Offer ask, search, get_document and resume to a client of the Model Context Protocol, which starts this command.

    It talks over standard input and output. `sleuth serve` offers the same tools over HTTP, at /mcp.
    """
    share_arenas()
    with extra("mcp", "MCP"):
        from sleuth.studio.mcp.server import mcp_server

    backend = Local(settings=Settings())
    asyncio.run(mcp_server(lambda _owner: backend).run_stdio_async())
