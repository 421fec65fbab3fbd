"""The archive of `sleuth doctor --bundle`: what an issue report needs, without texts, names and secrets.

Everything is chosen by what it is, not by what it must not contain: settings of a known kind, numbers of rows, fields
of log lines. Strings that may quote something are cut, and paths, hosts and owners are masked.
"""

import json
import platform
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from importlib.metadata import distributions, version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from zipfile import ZIP_DEFLATED, ZipFile

from sqlalchemy import URL, func, inspect, select, table
from sqlalchemy.exc import DBAPIError

from sleuth.graphs.persistence import runs_url
from sleuth.studio.cli.doctor_checks import Finding
from sleuth.tools.errors import StoreError, UsageError
from sleuth.tools.optional_imports import DISTRIBUTION
from sleuth.tools.settings import Settings
from sleuth.tools.storage import catalogue_url, open_engine

LOG_LINES = 2_000
"""Lines of the log that are looked at, from its end."""

SHOWN_SETTINGS = frozenset(
    {"file_seconds", "file_megabytes", "file_characters", "keep_originals", "ranker", "latest_only", "wait", "tracing"}
    | {"requests_a_minute", "tokens_a_day", "trace_texts", "profile", "concurrency", "timeout"}
)
"""Settings with numbers, flags and choices; of the others only those are named that are set."""

SHOWN_FIELDS = {
    "at": re.compile(r"[\d:.TZ-]{10,30}"),
    "level": re.compile(r"debug|info|warning|error|critical"),
    "route": re.compile(r"(/[a-z][a-z0-9_-]*|/\{[a-z]+\})+"),
    "outcome": re.compile(r"done|waiting|stopped|interrupted|failed"),
    **dict.fromkeys(("status", "seconds", "calls", "tokens"), re.compile(r"[\d.]+")),
}
"""Fields of a log line that are kept, if they look as the server writes them."""

OUR_TABLES = ("sleuth_", "checkpoint", "writes")

_FRAME = re.compile(r'File ".*?((?:sleuth|site-packages|lib)/[\w./-]+)", line (\d+), in ([\w<>]+)')
_ERROR = re.compile(r"^([\w.]*(?:Error|Exception|Interrupt|Timeout|Unavailable|Busy|Damaged))\b", re.MULTILINE)
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|‘[^’]*’|“[^”]*”|`[^`]*`")


def write_bundle(file: Path, settings: Settings, findings: Iterable[Finding], log: Path | None) -> list[str]:
    """Write the archive and return the names of its members; this blocks.

    Args:
        file: the archive; it must not exist.
        settings: the settings that are described.
        findings: the results of the checks.
        log: a log of `sleuth serve`, whose end is summarized; by default that of the embedded model server.

    Raises:
        UsageError: the file exists already, or the log cannot be read.
        StoreError: the archive cannot be written.
    """
    members: dict[str, Any] = {
        "doctor.json": [{**asdict(finding), "detail": mask(finding.detail, settings)} for finding in findings],
        "versions.json": _versions(),
        "settings.json": _settings(settings),
        "rows.json": {
            "catalogue": _rows(catalogue_url(settings.home, settings.database_url)),
            "runs": _rows(runs_url(settings)),
        },
        "log.json": [*summarize_log(_last_lines(settings, log))],
    }
    try:
        with file.open("xb") as out, ZipFile(out, "w", ZIP_DEFLATED) as archive:
            for name, value in members.items():
                archive.writestr(name, json.dumps(value, indent=1) + "\n")
    except FileExistsError:
        raise UsageError(f"{file} exists already. Choose another name.") from None
    except OSError as error:
        raise StoreError(f"{file} cannot be written: {error}.") from error
    return list(members)


def mask(text: str, settings: Settings) -> str:
    """Cut what is quoted, and replace folders, addresses, owners and model names."""
    urls = settings.model_url, settings.chroma_url, settings.database_url, settings.knowledge_graph
    hosts = [urlsplit(url or "").hostname for url in urls]
    named = [settings.owner, settings.collection, settings.operator, settings.model, settings.embedder]
    known = {"all-MiniLM-L6-v2", "none", "default", "local"}
    secret = {
        str(settings.home): "HOME",
        str(Path.home()): "~",
        **{each: "NAME" for each in [*hosts, *named, *settings.models.values()] if each and each not in known},
    }
    text = _QUOTED.sub("'…'", text)
    for each, shown in sorted(secret.items(), key=lambda pair: -len(pair[0])):
        text = text.replace(each, shown)
    return re.sub(r"(?<!\w)(?:~|HOME)?(?:/[^\s,;:()]+)+|\b\w+://\S+", "PATH", text)


def _versions() -> dict[str, Any]:
    found = {str(each.metadata["Name"]): each.version for each in distributions() if each.metadata["Name"]}
    return {
        "sleuth": version(DISTRIBUTION),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "packages": dict(sorted(found.items(), key=lambda pair: pair[0].lower())),
    }


def _settings(settings: Settings) -> dict[str, Any]:
    values = settings.model_dump(mode="json")
    default = {
        name: field.get_default(call_default_factory=True, validated_data={"home": settings.home})
        for name, field in type(settings).model_fields.items()
    }
    shown = {name: values[name] for name in sorted(SHOWN_SETTINGS)}
    given = [name for name in values if name not in SHOWN_SETTINGS and getattr(settings, name) != default[name]]
    return {**shown, "also set": sorted(given)}


def _rows(url: str | URL) -> dict[str, int | None] | str:
    """Return the number of rows of each table, or why the database cannot be read."""
    engine = open_engine(url)
    if engine.dialect.name == "sqlite" and not Path(str(engine.url.database)).exists():
        return "missing"
    try:
        with engine.connect() as connection:
            names = [each for each in inspect(connection).get_table_names() if each.startswith(OUR_TABLES)]
            return {name: connection.scalar(select(func.count()).select_from(table(name))) for name in names}
    except DBAPIError as error:
        return type(error.orig).__name__
    finally:
        engine.dispose()


def _last_lines(settings: Settings, log: Path | None) -> list[str]:
    file = log or settings.home / "model-server" / "server.log"
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_LINES:]
    except OSError as error:
        if log is not None:
            raise UsageError(f"{log} cannot be read: {error.strerror}.") from error
        return []


def summarize_log(lines: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield what log lines have of times, levels, routes, numbers, kinds of errors, and places in the code."""
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            record = {"traceback": line}
        kept = {name: record[name] for name, form in SHOWN_FIELDS.items() if form.fullmatch(str(record.get(name)))}
        text = str(record.get("traceback", ""))
        frames = [f"{path}:{number} {function}" for path, number, function in _FRAME.findall(text)]
        kept |= {name: found for name, found in (("errors", _ERROR.findall(text)), ("frames", frames)) if found}
        if kept:
            yield kept
