"""`sleuth mcp`."""

from sleuth.studio.cli.app import run_async
from sleuth.tools.errors import extra
from sleuth.tools.settings import Settings


@run_async
async def mcp() -> None:
    """Serve documents and methods to an MCP client over standard input and output.

    The client starts this command. `sleuth serve` offers the same tools over HTTP, at /mcp.
    """
    with extra("mcp", "MCP"):
        from sleuth.studio.mcp import mcp_server
        from sleuth.studio.mcp_backends import open_local_backend

    async with open_local_backend(Settings()) as backend:
        await mcp_server(lambda _owner: backend).run_stdio_async()
