"""`sleuth serve`."""

from typing import Annotated

import typer
from rich.text import Text

from sleuth.studio.console import progress_console
from sleuth.studio.memory import share_arenas
from sleuth.tools.optional_imports import extra
from sleuth.tools.settings import Settings


def serve(
    *,
    host: Annotated[str, typer.Option(help="Address to listen at; other machines need keys.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen at.")] = 8100,
) -> None:
    """Serve the chat page, the OpenAI-compatible API and the runs API over HTTP."""
    share_arenas()
    with extra("serve", "Serving"):
        import python_multipart  # noqa: F401 - FastAPI would complain of it in words of its own

        from sleuth.studio.server.main import serve as serve_app
    name = f"[{host}]" if ":" in host else host
    up = Text(f"http://{name}:{port}, until it is interrupted")
    serve_app(Settings(), host=host, port=port, on_ready=lambda: progress_console().print(up))
