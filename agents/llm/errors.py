"""Errors of requests to the model server, each with a remedy in its message."""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Self

import httpx2
import openai

from sleuth.tools.errors import ContextTooLong, ModelError, ModelTimeout, ModelUnavailable, UnknownName
from sleuth.tools.http import UnusableReply

_TOO_LONG = re.compile(
    r"context_length|context (?:length|window|size)|prompt is too long|too many (?:input )?tokens|maximum.{0,20}tokens",
    re.IGNORECASE,
)


class Malformed(UnusableReply):
    """A response with status 200 whose body is not a completion. A retry may help."""


class BrokenStream(Exception):
    """An error that a server reports in the middle of a stream, with its HTTP status."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail

    @classmethod
    def of(cls, error: object) -> Self:
        """Return the error in an event's data."""
        about = error if isinstance(error, Mapping) else {"message": error}
        code = about.get("code")
        return cls(code if type(code) is int and 400 <= code < 600 else 500, _short(str(about.get("message"))))


FAILURES = (openai.APIError, httpx2.RequestError, BrokenStream)
"""The errors of a request."""


def unknown_model(name: str, known: list[str]) -> UnknownName:
    """Return the error for a model that the server does not list."""
    served = f"The server has: {', '.join(known)}." if known else "The server lists none."
    return UnknownName("model", name, known, f"{served} See SLEUTH_MODEL and SLEUTH_MODELS.")


def _refused(url: str, status: int, detail: str) -> ModelError:
    if status in (401, 403):
        return ModelError(f"The model server at {url} refuses the key (status {status}): set SLEUTH_MODEL_KEY.")
    if status == 429:
        return ModelUnavailable(f"The model server at {url} is overloaded (status 429): lower SLEUTH_CONCURRENCY.")
    if status >= 500:
        return ModelUnavailable(f"The model server at {url} fails with status {status}: {detail}")
    if status in (400, 422) and "prompt_embeds" in detail:
        return ModelError(
            f"The model server at {url} cannot take the token of this graph model: {detail} Serve the language model "
            "that it was tuned with: `sleuth model serve --adapter FOLDER`, or vLLM with --enable-prompt-embeds."
        )
    if status in (400, 413, 422) and _TOO_LONG.search(detail):
        return ContextTooLong(f"The model server at {url} finds the prompt too long: {detail}")
    return ModelError(f"The model server at {url} refuses the call with status {status}: {detail}")


@asynccontextmanager
async def as_model_errors(url: str, *, seconds: float) -> AsyncIterator[None]:
    """Limit the duration of a request with all its retries, and raise its failure as a ModelError."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except (TimeoutError, *FAILURES) as error:
        raise _model_error(error, url, seconds) from error


def _model_error(error: Exception, url: str, seconds: float) -> ModelError:
    if isinstance(error, TimeoutError | openai.APITimeoutError | httpx2.TimeoutException):
        return ModelTimeout(f"The model server at {url} gave no reply within {seconds:g} s: see SLEUTH_TIMEOUT.")
    if isinstance(error, BrokenStream):
        return _refused(url, error.status, error.detail)
    if isinstance(error, openai.APIStatusError):
        detail = error.message.removeprefix(f"Error code: {error.status_code} - ")
        code = f" ({error.code})" if isinstance(error.code, str) else ""
        return _refused(url, error.status_code, _short(detail) + code)
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, UnusableReply):
            return ModelUnavailable(f"The model server at {url} sends no usable reply, also after retries: {cause}.")
        cause = cause.__cause__
    return ModelUnavailable(
        f"No model server answers at {url}: start one with `sleuth model serve`, or set SLEUTH_MODEL_URL."
    )


def _short(text: str) -> str:
    return " ".join(text[:3_000].split())[:300]
