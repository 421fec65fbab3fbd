"""Errors of requests to the model server, each with a remedy in its message."""

import json
import re
from collections.abc import Mapping

import httpx2
from langchain_core import exceptions as langchain

from sleuth.tools.errors import BadReply, ContextTooLong, ModelError, ModelTimeout, ModelUnavailable, UnknownName
from sleuth.tools.http import UnusableReply
from sleuth.tools.text.normalization import shorten

_TOO_LONG = re.compile(
    r"context[_ ](?:length|window|size)|maximum (?:context|model|input|sequence)|maximum.{0,20}tokens"
    r"|too many (?:input )?tokens|(?:prompt|input|request) (?:is )?too (?:long|large)"
    r"|(?:prompt|input|sequence) length.{0,40}exceed|`inputs`.{0,40} must (?:be <=|have less)",
    re.IGNORECASE,
)


class Refused(ModelError):
    """A request with a parameter that the server does not accept; its cause is the `ServerError`."""


class ServerError(Exception):
    """An error that a server reports, as an error status, or in a reply with status 200, mostly in a stream.

    Attributes:
        status: the status, or the error's own.
        detail: the reason.
        retry_after: the header of this name; empty if there is none.
    """

    def __init__(self, body: object, status: int | None = None, *, retry_after: str = "") -> None:
        """`body` is the body of the response, or the data of the event."""
        error = body.get("error") or body if isinstance(body, Mapping) else body
        code = error.get("code") if isinstance(error, Mapping) else None
        self.status = status or (code if type(code) is int and 400 <= code < 600 else 500)
        self.detail = _reason(error) + (f" ({code})" if isinstance(code, str) else "")
        self.retry_after = retry_after
        super().__init__(self.detail)


def unknown_model(name: str, listed: list[str]) -> UnknownName:
    """Return the error for a model that the server does not list."""
    served = f"The server has: {', '.join(listed)}." if listed else "The server lists none."
    return UnknownName("model", name, listed, f"{served} See SLEUTH_MODEL and SLEUTH_MODELS.")


def as_model_error(error: Exception, url: str, *, seconds: float) -> ModelError:
    """Return the failure of a request with all its retries, which had this number of seconds, as a ModelError."""
    server = f"The model server at {url}"
    match error:
        case ServerError():
            return _refused(server, error.status, error.detail)
        case TimeoutError() | httpx2.TimeoutException():
            return ModelTimeout(f"{server} gave no reply within {seconds:g} s: see SLEUTH_TIMEOUT.")
        case UnusableReply():
            return ModelUnavailable(f"{server} sends no usable reply, also after retries: {error}.")
        case httpx2.ReadError() | httpx2.RemoteProtocolError():
            closed = "closed the connection during its reply, also after retries: see its log."
            return ModelUnavailable(f"{server} {closed}")
    start = "start one with `sleuth model serve`, or set SLEUTH_MODEL_URL."
    return ModelUnavailable(f"No model server answers at {url}: {start}")


_NO_REPLY = ModelTimeout, "gave no reply within {seconds:g} s: see SLEUTH_TIMEOUT."
_NO_KEY = ModelError, "refuses the key: {text} Check the key of the chat model."
_FAILURES: dict[type[Exception], tuple[type[ModelError], str]] = {
    TimeoutError: _NO_REPLY,
    langchain.ModelTimeoutError: _NO_REPLY,
    langchain.ContextOverflowError: (ContextTooLong, "finds the prompt too long: {text}"),
    langchain.ModelRefusalError: (BadReply, "refuses to reply: {text}"),
    langchain.ModelAuthenticationError: _NO_KEY,
    langchain.ModelPermissionDeniedError: _NO_KEY,
    langchain.ModelNotFoundError: (ModelError, "is not served: {text} Check the name of the chat model."),
    langchain.ModelRateLimitError: (ModelUnavailable, "is overloaded: {text} Lower SLEUTH_CONCURRENCY."),
    langchain.ModelConnectionError: (
        ModelUnavailable,
        "cannot be reached: {text} Check the address of the chat model.",
    ),
    langchain.ModelInvalidRequestError: (Refused, "refuses the call: {text}"),
    Exception: (ModelUnavailable, "failed: {text}"),
}
"""Failures of LangChain's chat models: what they are for sleuth, and the message after the model's name."""


def as_chat_model_error(error: Exception, name: str, *, seconds: float) -> ModelError:
    """Return the failure of a LangChain chat model, which had this number of seconds, as a ModelError."""
    ours, message = next(failure for kind, failure in _FAILURES.items() if isinstance(error, kind))
    text = f"{type(error).__name__}: {shorten(str(error)).removesuffix('.')}."
    return ours(f"{name} {message.format(text=text, seconds=seconds)}")


def _refused(server: str, status: int, detail: str) -> ModelError:
    if status in (401, 403):
        return ModelError(f"{server} refuses the key (status {status}): set SLEUTH_MODEL_KEY.")
    if status == 429:
        return ModelUnavailable(f"{server} is overloaded (status 429): lower SLEUTH_CONCURRENCY.")
    if status in (400, 422) and "prompt_embeds" in detail:
        return ModelError(
            f"{server} cannot take the token of this graph model: {detail} Serve the language model that it was tuned "
            "with: `sleuth model serve --adapter FOLDER`, or vLLM with --enable-prompt-embeds."
        )
    if status == 413 or _TOO_LONG.search(detail):  # older servers fail with status 500
        return ContextTooLong(f"{server} finds the prompt too long: {detail}")
    if status >= 500:
        return ModelUnavailable(f"{server} fails with status {status}: {detail}")
    if status == 404:
        detail = f"{detail.removesuffix('.')}. Check SLEUTH_MODEL, and whether SLEUTH_MODEL_URL lacks its /v1."
    message = f"{server} refuses the call with status {status}: {detail}"
    return (Refused if status in (400, 422) else ModelError)(message)


def _reason(body: object) -> str:
    """Return the reason in the body of an error, in any form that servers write."""
    if isinstance(body, list):
        return shorten("; ".join(map(_reason, body)))
    if isinstance(body, Mapping):
        named = (body[name] for name in ("message", "detail", "error", "msg") if body.get(name))
        body = next((_reason(part) for part in named), json.dumps(body, ensure_ascii=False))
    return shorten(str(body or "no reason given"))
