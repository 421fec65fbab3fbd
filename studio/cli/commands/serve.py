"""`sleuth serve`."""

from typing import Annotated, Literal

import typer
from rich.text import Text

from sleuth.studio.console.output import progress_console
from sleuth.tools.errors import extra
from sleuth.tools.settings import Settings


def serve(
    *,
    host: Annotated[
        str, typer.Option(help="Address to bind to; one that other machines reach needs API keys.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8100,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log a line per request.")] = False,
    log_format: Annotated[Literal["json", "text"], typer.Option(help="Format of the log on standard error.")] = "json",
) -> None:
    """Serve the chat page, the OpenAI-compatible API and the runs API over HTTP."""
    with extra("serve", "Serving"):
        import python_multipart  # noqa: F401 - FastAPI's own error does not name the extra

        from sleuth.studio.server.main import serve as serve_app
    name = f"[{host}]" if ":" in host else host
    up = Text(f"http://{name}:{port} (Ctrl-C to stop)")
    serve_app(
        Settings(),
        host=host,
        port=port,
        log_format=log_format,
        verbose=verbose,
        on_ready=lambda: progress_console().print(up),
    )
