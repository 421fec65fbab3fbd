"""Errors as OpenAI's clients expect them: {"error": {"message", "type", "code", "param"}} with a fitting status."""

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

_log = logging.getLogger(__name__)

NAMED_IN_PATHS = {"thread", "checkpoint", "document", "passage", "ingest"}
"""What is not found where its name stands in a path; any other unknown name is a wrong argument."""

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

# The most particular first.
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


STORE_AWAY = "The store cannot be used now; the server's log says why. What was saved is not lost."


class Fault(BaseModel):
    """What went wrong."""

    message: str
    type: str
    code: str | None = None
    param: str | None = None


class Faults(BaseModel):
    """The body of every error."""

    error: Fault


_DESCRIPTIONS = {
    400: "The request cannot be understood; the message says what to change.",
    401: "No key, or an unknown one.",
    403: "Without keys only this machine is served.",
    404: "There is no such thing, or it is another's.",
    409: "Not while it stands as it does: it is running, or it has no answer yet.",
    413: "The body is too large.",
    429: "Too much at once, or the quota is used up.",
    502: "The model server gave no usable reply.",
    503: "The store or the model server cannot be used now.",
    504: "The model server gave no reply in time.",
}

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": Faults, "description": description} for status, description in _DESCRIPTIONS.items()
}

STREAM_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Faults"}}},
    }
    for status, description in _DESCRIPTIONS.items()
}
"""Of routes that stream: FastAPI takes it that their errors are streams too."""


def status_of(error: errors.SleuthError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, errors.UnknownName) and error.kind in NAMED_IN_PATHS:
        return 404
    return next(status for kind, status, _ in STATUSES if isinstance(error, kind))


def kind_of(error: errors.SleuthError) -> str:
    """The type of an error, in OpenAI's manner."""
    if status_of(error) == 404:
        return "not_found_error"
    return next(name for kind, _, name in STATUSES if isinstance(error, kind))


def respond(
    status: int,
    message: str,
    *,
    kind: str | None = None,
    code: str | None = None,
    param: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """An error as a response."""
    fault = Fault(message=message, type=kind or BY_STATUS.get(status, "server_error"), code=code, param=param)
    return JSONResponse(Faults(error=fault).model_dump(), status, headers=headers)


def install(app: FastAPI, *, postgres: bool) -> None:
    """Has the application answer in this form whatever goes wrong, also in the driver of `postgres`."""
    for kind, handler in HANDLERS.items():
        app.add_exception_handler(kind, handler)
    if not postgres:  # the driver takes a moment to load
        return
    with suppress(ImportError):  # an extra: what opens the store says so
        import psycopg

        app.add_exception_handler(psycopg.Error, _store)


async def _sleuth(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.SleuthError)
    headers = {"Retry-After": "5"} if isinstance(error, errors.StoreBusy) else None
    name = type(error).__name__
    code = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).strip("_")
    return respond(status_of(error), str(error), kind=kind_of(error), code=code, headers=headers)


async def _invalid(_request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"] if part not in ("body", "query", "path", "header"))
    return respond(400, f"{where or 'The request'}: {first['msg']}.", code="invalid_value", param=where or None)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    if isinstance(error.__cause__, OSError):  # FastAPI takes any fault for one of the body, also one in keeping it
        return await _store(request, error.__cause__)
    return respond(error.status_code, str(error.detail), headers=error.headers)


async def _store(_request: Request, error: Exception) -> JSONResponse:
    _log.error("a request failed since the store cannot be used", exc_info=error)
    return respond(503, STORE_AWAY, kind="store_error", headers={"Retry-After": "5"})


async def _ours(_request: Request, error: Exception) -> JSONResponse:
    _log.error("a request failed by a fault of ours", exc_info=error)
    return respond(500, "The server failed; its log says why.", kind="internal_error")


HANDLERS = {
    errors.SleuthError: _sleuth,
    RequestValidationError: _invalid,
    HTTPException: _http,
    SQLAlchemyError: _store,
    sqlite3.Error: _store,
    Exception: _ours,
}
"""What answers for each kind of error."""
