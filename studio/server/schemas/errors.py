"""Errors in the format of OpenAI's API: {"error": {"message", "type", "code", "param"}} with a matching status."""

import logging
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from sleuth.tools import errors
from sleuth.tools.storage.database import is_database_error

_log = logging.getLogger(__name__)

PATH_KINDS = {"assistant", "run", "thread", "checkpoint", "document", "original", "passage", "ingest"}
"""Kinds of names that are part of a path: an unknown one is a 404, any other unknown name a wrong argument."""

BY_STATUS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
}

# The most specific class first.
STATUSES: tuple[tuple[type[errors.SleuthError], int, str], ...] = (
    (errors.UsageError, 400, "invalid_request_error"),
    (errors.DocumentError, 400, "invalid_request_error"),
    (errors.QuotaUsedUp, 429, "insufficient_quota"),
    (errors.ThreadBusy, 409, "conflict_error"),
    (errors.RunError, 409, "conflict_error"),
    (errors.StoreError, 503, "store_error"),
    (errors.ModelTimeout, 504, "model_error"),
    (errors.ModelUnavailable, 503, "model_error"),
    (errors.ModelError, 502, "model_error"),
)


class RunFailed(errors.RunError):
    """A run ended without an answer; `kind` is the type of its error, as `describe_failure` returns it."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


STORE_AWAY = "The store is unavailable; see the server's log. Saved data is not lost."
SERVER_FAILED = "The server failed; see its log."


class Fault(BaseModel):
    """An error."""

    message: str
    type: str
    code: str | None = None
    param: str | None = None


class Faults(BaseModel):
    """The body of every error."""

    error: Fault


ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Faults, "description": description}
    for status, description in {
        400: "The request is invalid; see the message.",
        401: "The API key is missing or unknown.",
        403: "Without API keys only this machine is served; a key for `embed.js` can only chat.",
        404: "It does not exist, or belongs to another owner.",
        409: "It conflicts with the current state: the run is active, or has no answer yet.",
        413: "The body is too large.",
        429: "Too many requests, or the quota is used up.",
        502: "The model server gave no usable reply.",
        503: "The store or the model server is unavailable.",
        504: "The model server gave no reply in time.",
    }.items()
}


def _classify(error: errors.SleuthError) -> tuple[int, str]:
    """Return the HTTP status of an error, and its type as in OpenAI's API."""
    if isinstance(error, errors.UnknownName) and error.kind in PATH_KINDS:
        return 404, "not_found_error"
    if isinstance(error, RunFailed):
        return next((status for _, status, name in reversed(STATUSES) if name == error.kind), 500), error.kind
    return next((status, name) for kind, status, name in STATUSES if isinstance(error, kind))


def describe_failure(error: BaseException) -> tuple[str, str]:
    """Return the message and the type of an error that ended work in the background."""
    if isinstance(error, errors.SleuthError):
        return str(error), _classify(error)[1]
    if is_database_error(error):
        return STORE_AWAY, "store_error"
    return f"The server failed with {type(error).__name__}; see its log.", "internal_error"


def respond(
    status: int,
    message: str,
    *,
    kind: str | None = None,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return an error response."""
    fault = Fault(message=message, type=kind or BY_STATUS.get(status, "server_error"), code=code, param=param)
    return JSONResponse(Faults(error=fault).model_dump(), status, headers=headers)


def install(app: FastAPI, *, postgres: bool) -> None:
    """Install the handlers of all errors, including those of the `postgres` driver if it is used."""
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    if not postgres:  # importing the driver takes time
        return
    with suppress(ImportError):  # an extra; opening the store reports it
        import psycopg

        app.add_exception_handler(psycopg.Error, _store)


async def _sleuth(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.SleuthError)
    headers = {"Retry-After": "5"} if isinstance(error, errors.StoreBusy) else None
    status, kind = _classify(error)
    code = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in type(error).__name__).strip("_")
    return respond(status, str(error), kind=kind, code=code, headers=headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    return respond(400, f"{where or 'The request'}: {first['msg']}.", code="invalid_value", param=where or None)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, OSError):  # FastAPI reports any error while it stores the body as an invalid body
        return await _store(request, error.__cause__)
    return respond(error.status_code, str(error.detail), headers=error.headers)


async def _store(_request: Request, error: Exception) -> JSONResponse:
    _log.error("a request failed because the store is unavailable", exc_info=error)
    return respond(503, STORE_AWAY, kind="store_error", headers={"Retry-After": "5"})


async def _unexpected(_request: Request, error: Exception) -> JSONResponse:
    _log.error("a request failed with an unexpected error", exc_info=error)
    return respond(500, SERVER_FAILED, kind="internal_error")


HANDLERS = {
    errors.SleuthError: _sleuth,
    RequestValidationError: _invalid,
    HTTPException: _http,
    SQLAlchemyError: _store,
    sqlite3.Error: _store,
    Exception: _unexpected,
}
"""The handler of each kind of error."""
