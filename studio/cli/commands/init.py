"""`sleuth init`."""

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from sleuth.agents.llm.endpoint import Endpoint
from sleuth.studio.cli.commands.documents import ingest
from sleuth.studio.console.output import progress_console
from sleuth.tools.errors import SleuthError, UsageError
from sleuth.tools.search.vectors import NONE
from sleuth.tools.settings import Settings

FILE = Path("sleuth.toml")

PORTS = {8000: "vLLM", 11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp"}
"""The usual ports of model servers; the embedded server is a vLLM server."""

CONNECT_SECONDS = 2.0

HEADER = "# Settings of sleuth in this folder. Each is also a variable, such as SLEUTH_MODEL_URL, which comes first."


def init(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing: take the first server, model and embedder.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing sleuth.toml.")] = False,
) -> None:
    """Find the model server, ask at most four questions, and write sleuth.toml."""
    if FILE.exists() and not force:
        raise UsageError(f"{FILE} exists in this folder. Edit it, or replace it with: sleuth init --force")
    settings = Settings()
    usual = [f"http://127.0.0.1:{port}/v1" for port in PORTS]
    servers = asyncio.run(find_servers(list(dict.fromkeys([settings.model_url, *usual]))))
    ask = _first if yes else _ask
    url = ask("Model server (a number or an address)", list(servers), settings.model_url)
    models = servers.get(url.rstrip("/"), [])
    model = ask("Model (a number or a name)", models, None) if len(models) > 1 else None
    embedder = ask("Embedder (a number, a name, a folder or an address)", [settings.embedder, NONE], None)
    folder = "" if yes else _prompt("Folder to ingest now (Enter: none)", "", show_default=False)
    FILE.write_text(to_toml({"model_url": url, "model": model, "embedder": embedder}), encoding="utf-8")
    console = progress_console()
    console.print(f"Wrote {FILE}.")
    if not servers:
        console.print("No model server answers yet. Start one, for example with: sleuth model serve")
    if folder:
        ingest([str(Path(folder).expanduser())])
    more = "" if folder else "sleuth ingest FOLDER, then "
    console.print(f"Next: {more}sleuth ask QUESTION. `sleuth doctor --model` examines the model.", soft_wrap=True)


async def find_servers(urls: Sequence[str]) -> dict[str, list[str]]:
    """Return the models of the servers that answer by address, without embedders."""
    replies = await asyncio.gather(*map(_models, urls))
    return {url.rstrip("/"): models for url, models in zip(urls, replies, strict=True) if models is not None}


async def _models(url: str) -> list[str] | None:
    settings = Settings(model_url=url, timeout=CONNECT_SECONDS)
    try:
        endpoint = await asyncio.to_thread(Endpoint, settings)
        async with endpoint:
            listed = await endpoint.models()
            return None if listed is None else [name for name in listed if "embed" not in name.lower()]
    except SleuthError:
        return None


def to_toml(values: dict[str, str | None]) -> str:
    """Return the lines of `sleuth.toml` with the values that are set; a JSON text is a TOML text too."""
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items() if value]
    return "\n".join([HEADER, *lines, ""])


def _first(_question: str, options: Sequence[str], otherwise: str | None) -> str:
    return options[0] if options else str(otherwise)


def _ask(question: str, options: Sequence[str], otherwise: str | None) -> str:
    """Ask for one of the options, by number or name, or for another text; the first option is the default."""
    for number, option in enumerate(options, 1):
        typer.echo(f"  {number}  {option}", err=True)
    answer = _prompt(question, _first(question, options, otherwise))
    return options[int(answer) - 1] if answer.isdecimal() and 0 < int(answer) <= len(options) else answer


def _prompt(question: str, default: str, *, show_default: bool = True) -> str:
    try:
        return str(typer.prompt(question, default=default, show_default=show_default, err=True)).strip()
    except typer.Abort:
        if sys.stdin.isatty():  # Ctrl-C
            raise
        typer.echo(err=True)
        raise UsageError("The input ended before the last question. Without a terminal: sleuth init --yes") from None
