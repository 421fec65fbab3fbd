"""Errors of requests to the model server, each with a remedy in its message."""

import re
from collections.abc import Mapping
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
"""The errors of a request; `from_client` converts them."""


def is_passing(status: int) -> bool:
    """Return whether a retry may succeed after this status."""
    return status >= 500 or status in (408, 409, 429)


def unreachable(url: str) -> ModelUnavailable:
    """Return the error for a server that cannot be reached."""
    return ModelUnavailable(
        f"No model server answers at {url}: start one with `sleuth model serve`, or set SLEUTH_MODEL_URL."
    )


def too_slow(url: str, seconds: float) -> ModelTimeout:
    """Return the error for a time-out."""
    return ModelTimeout(f"The model server at {url} gave no reply within {seconds:g} s: see SLEUTH_TIMEOUT.")


def unknown_model(name: str, known: list[str]) -> UnknownName:
    """Return the error for a model that the server does not list."""
    served = f"The server has: {', '.join(known)}." if known else "The server lists none."
    return UnknownName("model", name, known, f"{served} See SLEUTH_MODEL and SLEUTH_MODELS.")


def refused(url: str, status: int, detail: str) -> ModelError:
    """Return the error for a status after all retries."""
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


def from_client(error: Exception, *, url: str, seconds: float) -> ModelError:
    """Return the error of a request after all retries."""
    if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
        return too_slow(url, seconds)
    if isinstance(error, BrokenStream):
        return refused(url, error.status, error.detail)
    if isinstance(error, openai.APIStatusError):
        detail = error.message.removeprefix(f"Error code: {error.status_code} - ")
        code = f" ({error.code})" if isinstance(error.code, str) else ""
        return refused(url, error.status_code, _short(detail) + code)
    if (unusable_reply := _cause(error, UnusableReply)) is not None:
        return ModelUnavailable(
            f"The model server at {url} sends no usable reply, also after retries: {unusable_reply}."
        )
    return unreachable(url)


def _cause(error: BaseException, kind: type[Exception]) -> Exception | None:
    """Return the first error of a kind in the chain of causes."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kind):
        cause = cause.__cause__
    return cause


def _short(text: str) -> str:
    return " ".join(text[:3_000].split())[:300]
