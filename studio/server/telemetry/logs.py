"""Log lines, as JSON or as text, with the ids of the request and the run in which they were written."""

import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, Literal

from sleuth.studio.console.output import escaped

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


class Lines(logging.Formatter):
    """Formatter that writes one JSON object per record, or its message and then the same fields as `name=value`."""

    def __init__(self, format: LogFormat) -> None:
        super().__init__()
        self._format = format

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record with the fields of `extra={"about": {…}}`, and its traceback."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03}Z"
        about = {**_fields.get(), **getattr(record, "about", {})}
        traceback = self.formatException(record.exc_info) if record.exc_info else ""
        if self._format == "text":
            fields = "".join(f" {name}={value}" for name, value in about.items())
            line = escaped(f"{at} {record.levelname} {record.name}: {record.getMessage()}{fields}")
            # Indented: no text of an exception begins a line.
            return "\n  ".join([line, *map(escaped, traceback.splitlines())])
        values = {"at": at, "level": record.levelname.lower(), "logger": record.name, "message": record.getMessage()}
        values |= {**about, **({"traceback": traceback} if traceback else {})}
        return escaped(json.dumps(values, ensure_ascii=False))


def configure_logging(format: LogFormat, *, verbose: bool = True) -> None:
    """Log to standard error; without `verbose` no line per request, except for those that fail."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines(format))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("sleuth", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.INFO)
    logging.getLogger("sleuth.studio.server.middleware.request_log").setLevel(
        logging.INFO if verbose else logging.WARNING
    )
