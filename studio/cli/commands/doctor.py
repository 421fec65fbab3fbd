"""`sleuth doctor`: checks, each with a command that fixes the problem. `--model` probes the server again,
`--duplicates` compares all documents.
"""

import asyncio
import os
import platform
import shlex
import shutil
from collections.abc import Awaitable
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import httpx2
import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy import func, inspect, make_url, select

from sleuth.agents.llm.client import LLMClient, choose_models
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.agents.llm.server_features import find_window
from sleuth.graphs.core.tracing import backend
from sleuth.studio.cli.app import run_async
from sleuth.studio.console.notices import demo_notice
from sleuth.studio.console.output import JsonOption, activity, counted, emit
from sleuth.tools.collection import Collection
from sleuth.tools.errors import SleuthError, StoreError, StoreTooNew, needs_part
from sleuth.tools.evidence_checker import EvidenceChecker
from sleuth.tools.search.vectors import NONE
from sleuth.tools.search.vectors.embedder import find_packaged, is_default
from sleuth.tools.settings import Settings, client_options, is_loopback, tracing_variables
from sleuth.tools.storage.database import catalogue_url, in_thread, open_engine, transaction
from sleuth.tools.storage.schema import SCHEMA_VERSION, documents, meta

SECONDS = 10.0
CONNECT_SECONDS = 4
LEAST_FREE = 1 << 30  # bytes
EMPTY = "empty, nothing was ingested yet"
FEATURES = {
    "schema": ("schemas", "not guided by the server: schemas are written into the prompts"),
    "copies": ("quotes", "not guided by the server: more quotes fail verification"),
    "logprobs": ("log-probabilities", "not given: probabilities are 0.5, and crp-rag has no perplexity"),
}
"""Features of a model server that methods use: their names, and what happens without them."""
VLLM = "sleuth model serve --print-command MODEL prints the flags of a vLLM server, which has all of this"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of a check. `fix` repairs a failed check or improves a limited one."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


@run_async
async def doctor(
    *,
    model: Annotated[
        bool, typer.Option("--model", help="Also probe the model server: schemas, quotes, probabilities, streaming.")
    ] = False,
    duplicates: Annotated[
        bool, typer.Option("--duplicates", help="Also list documents that are almost the same.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check the installation and the servers; exit with status 1 if a check fails."""
    settings = Settings()
    with activity("Running all checks"):
        findings = await examine(settings)
    if model:
        with activity("Probing the model server"):
            findings += await examine_model(settings)
    if duplicates:
        with activity("Comparing all documents"):
            findings += await examine_duplicates(settings)
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark, style = ("limited", "yellow") if finding.fix else ("ok", "green")
        mark, style = (mark, style) if finding.ok else ("fails", "red")
        table.add_row(Text(mark, style=style), finding.name, Text(finding.detail))
        if finding.fix:
            table.add_row("", "", Text(f"fix: {finding.fix}", style="bold"))
    emit(findings, as_json, table)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


async def examine(settings: Settings) -> list[Finding]:
    """Run the checks that apply to the settings concurrently, each for at most ten seconds."""
    serve, install = "sleuth model serve", "sleuth model install"
    is_local = is_loopback(urlsplit(settings.model_url).hostname or "")
    catalogue = "pg_isready" if settings.database_url else "export SLEUTH_HOME=FOLDER, or SLEUTH_DATABASE_URL"
    checks = [
        ("home", _home(settings), "export SLEUTH_HOME=FOLDER, a writable one with free space"),
        ("model server", _model_server(settings), serve if is_local else "export SLEUTH_MODEL_URL=URL"),
        ("embedder", _embedder(settings), install),
        ("evidence checker", _checker(settings), "unset SLEUTH_CHECKER"),
        ("catalogue", _catalogue(settings), catalogue),
        ("tracing", _tracing(settings), "unset SLEUTH_TRACING"),
    ]
    if settings.vectors == "pgvector":
        checks.append(("pgvector", _pgvector(settings), "CREATE EXTENSION vector"))
    elif settings.chroma_url:
        checks.append(("Chroma", _reached(f"{settings.chroma_url.rstrip('/')}/api/v2/heartbeat"), "chroma run"))
    if settings.knowledge_graph:
        reached = _reached(settings.knowledge_graph, settings.proxy)
        checks.append(("knowledge graph", reached, "unset SLEUTH_KNOWLEDGE_GRAPH, or set another URL"))
    python = f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return [Finding(name="Python", ok=True, detail=python), *await asyncio.gather(*starmap(_run_check, checks))]


async def _run_check(name: str, check: Awaitable[str], fix: str) -> Finding:
    """Run a check; an unexpected exception is reported as a finding too."""
    (result,) = await asyncio.gather(asyncio.wait_for(check, SECONDS), return_exceptions=True)
    match result:
        case str():
            return Finding(name=name, ok=True, detail=result)
        case TimeoutError():
            problem = f"no answer within {SECONDS:.0f} s"
        case SleuthError():
            problem = str(result)
        case _:
            problem = f"{type(result).__name__}: {result}".splitlines()[0]
    return Finding(name=name, ok=False, detail=problem, fix=fix)


async def examine_model(settings: Settings) -> list[Finding]:
    """Probe the model server again for the features that methods use; one failed finding if it does not answer."""
    await asyncio.to_thread((settings.home / "capabilities.json").unlink, missing_ok=True)
    try:
        async with LLMClient.open(settings) as client:
            served = client.served("default")
    except SleuthError as error:
        return [Finding(name="model", ok=False, detail=str(error), fix="sleuth model serve, or see SLEUTH_MODEL_URL")]
    window, can = served.window, served.can
    by = "assumed, as the server does not report it" if window.is_assumed else window.server
    detail = f"{served.name} has {window.tokens:,} tokens" + (f" ({by})" if by else "")
    findings = [Finding(name="context window", ok=True, detail=detail, fix=window.advice)]
    for key, (name, without) in FEATURES.items():
        has = key in can
        findings.append(Finding(name=name, ok=True, detail="supported" if has else without, fix="" if has else VLLM))
    return findings


async def examine_duplicates(settings: Settings) -> list[Finding]:
    """Return a finding for each group of documents that are almost the same."""
    with needs_part("duplicates", "sleuth doctor --duplicates"):
        from sleuth.tools.collection.duplicates import find_duplicates

    async with await Collection.open(settings, check_embedder=False) as collection:
        groups = await asyncio.to_thread(find_duplicates, collection.catalogue)
    findings = []
    for group in groups:
        ids = [shlex.quote(id) for id in group.documents]
        detail = f"{', '.join(ids)}: {group.similarity:.0%} alike"
        fix = f"sleuth docs delete {' '.join(ids[1:])}"
        findings.append(Finding(name="duplicates", ok=True, detail=detail, fix=fix))
    return findings or [Finding(name="duplicates", ok=True, detail="no two documents are almost the same")]


@in_thread
def _home(settings: Settings) -> str:
    home = settings.home
    present = next(folder for folder in (home, *home.parents) if folder.exists())
    if not (present.is_dir() and os.access(present, os.W_OK | os.X_OK)):
        raise StoreError(f"{present} is not writable")
    free = shutil.disk_usage(present).free
    if free < LEAST_FREE:
        raise StoreError(f"{present} has only {free >> 20} MiB of free space")
    return f"{home}, {free >> 30} GiB free"


async def _model_server(settings: Settings) -> str:
    async with Endpoint(settings.model_copy(update={"timeout": CONNECT_SECONDS})) as endpoint:
        listed = await endpoint.models()
        names = sorted(set(choose_models(settings, listed).values()))
        if listed is None:
            return f"{settings.model_url} has no list of models; {', '.join(names)} is not checked"
        served = []
        for name in names:  # with the window, if the server reports it without loading the model
            window = await find_window(endpoint, name, listed[name], load=False)
            advice = f": {window.advice}" if window.advice else ""
            served.append(name if window.is_assumed else f"{name} ({window.tokens} tokens{advice})")
    notices = [f". {notice}" for name in names if (notice := demo_notice(name))]
    return f"{settings.model_url} serves {', '.join(served)}{''.join(notices)}"


async def _embedder(settings: Settings) -> str:
    """Check that the embedder is installed without loading it, which would take longer than all other checks."""
    name = settings.embedder
    if name == NONE:
        return "none: no vectors; graph and keyword search work, hybrid search uses the keyword index only"
    if name.startswith(("http://", "https://")):
        return await _reached(name.partition("#")[0], settings.proxy)
    is_folder, packaged = await asyncio.to_thread(lambda: (Path(name).is_dir(), find_packaged(name)))
    if is_folder or packaged:
        return f"{name} is installed"
    if is_default(name):
        raise StoreError(f"{name} is not installed; the first search would download it from the Hugging Face hub")
    return f"{name}, from the cache of the Hugging Face hub or the hub itself"


async def _reached(url: str, proxy: str | None = None) -> str:
    """Return the status of any reply; an error status also proves that the server answers."""
    async with httpx2.AsyncClient(timeout=CONNECT_SECONDS, **client_options(url, proxy)) as client:
        try:
            response = await client.get(url)
        except httpx2.HTTPError as error:
            raise StoreError(f"{url} does not answer ({error})") from error
    return f"{url} answers (status {response.status_code})"


@in_thread
def _checker(settings: Settings) -> str:
    name = EvidenceChecker.of_settings(settings).name
    return f"{name} (a better one: sleuth model install reader)" if name == "small" else name


@in_thread
def _catalogue(settings: Settings) -> str:
    """Compare the schema with that of this release, and count the documents; a `Catalogue` would migrate the schema."""
    url = make_url(catalogue_url(settings.home, settings.database_url))
    if settings.database_url:
        url = url.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)})
    elif not Path(str(url.database)).exists():
        return EMPTY
    conditions = documents.c.owner == settings.owner, documents.c.collection == settings.collection
    engine = open_engine(url)
    try:
        with transaction(engine) as connection:
            if not inspect(connection).has_table(meta.name):
                return EMPTY
            schema = int(connection.scalar(select(meta.c.value).where(meta.c.key == "schema_version")) or 0)
            if schema > SCHEMA_VERSION:
                raise StoreTooNew(f"written by a newer sleuth (schema {schema}, this one reads up to {SCHEMA_VERSION})")
            count = connection.scalar(select(func.count()).select_from(documents).where(*conditions))
    finally:
        engine.dispose()
    return f"schema {schema}, {counted(int(count or 0), 'document')} in {settings.collection!r}"


@in_thread
def _pgvector(settings: Settings) -> str:
    with needs_part("postgres", "SLEUTH_VECTORS=pgvector"):
        from sleuth.tools.search.vectors.pgvector_index import engine_of

    engine_of(settings.database_url)
    return "ready"


@in_thread
def _tracing(settings: Settings) -> str:
    if settings.tracing != "off":
        where = backend(settings.tracing).destination(settings.tracing)
        what = "with questions, passages, prompts and replies" if settings.trace_texts else "without texts"
        return f"on: runs {what} are sent to {where} (SLEUTH_TRACING)"
    ignored = tracing_variables(os.environ)
    return "off, no trace is sent anywhere" + (f"; ignored: {', '.join(ignored)}" if ignored else "")
