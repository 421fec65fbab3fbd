"""Log lines, as JSON or as text, with the ids of the request and the run in which they were written."""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Literal

LogFormat = Literal["json", "text"]

_fields: ContextVar[Mapping[str, Any]] = ContextVar("sleuth_log_fields", default=MappingProxyType({}))


@contextmanager
def log_fields(**fields: str) -> Iterator[None]:
    """Add fields to all lines that are written in the block, also by tasks and threads that it starts."""
    token = _fields.set({**_fields.get(), **fields})
    try:
        yield
    finally:
        _fields.reset(token)


def _about(record: logging.LogRecord) -> dict[str, Any]:
    return {**_fields.get(), **getattr(record, "about", {})}


def _at(record: logging.LogRecord) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z"


class JsonLines(logging.Formatter):
    """Formatter that writes one JSON object per record, with the fields of `extra={"about": {…}}`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        line = {"at": _at(record), "level": record.levelname.lower(), "logger": record.name}
        line |= {"message": record.getMessage(), **_about(record)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class TextLines(logging.Formatter):
    """Formatter that writes the same fields as `name=value` after the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record, followed by its traceback."""
        fields = "".join(f" {name}={value}" for name, value in _about(record).items())
        line = f"{_at(record)} {record.levelname} {record.name}: {record.getMessage()}{fields}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure_logging(format: LogFormat, *, verbose: bool = True) -> None:
    """Log to standard error; without `verbose` no line per request, except for those that fail."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if format == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("sleuth", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger("sleuth.studio.server.middleware.request_log").setLevel(
        logging.INFO if verbose else logging.WARNING
    )
