"""What went wrong between here and the model server, as one of our errors with a way out."""

import re

import httpx
import openai

from sleuth.tools.errors import ContextTooLong, ModelError, ModelTimeout, ModelUnavailable, UnknownName

_TOO_LONG = re.compile(
    r"context_length|context (?:length|window|size)|prompt is too long|too many (?:input )?tokens|maximum.{0,20}tokens",
    re.IGNORECASE,
)


class Malformed(httpx.RequestError):
    """The server said 200, but what it sent is no completion; for the client a broken connection: it tries again."""


def unreachable(url: str) -> ModelUnavailable:
    """Nobody listens there, or the connection broke, also when tried again."""
    return ModelUnavailable(
        f"No model server answers at {url}: start one with `sleuth model serve`, or set SLEUTH_MODEL_URL."
    )


def too_slow(url: str, seconds: float) -> ModelTimeout:
    """The server is there, but does not finish."""
    return ModelTimeout(f"The model server at {url} gave no reply within {seconds:g} s: see SLEUTH_TIMEOUT.")


def unknown_model(name: str, known: list[str]) -> UnknownName:
    """A name that the server does not list."""
    served = f"The server has: {', '.join(known)}." if known else "The server lists none."
    return UnknownName("model", name, known, f"{served} See SLEUTH_MODEL and SLEUTH_MODELS.")


def refused(url: str, status: int, detail: str) -> ModelError:
    """A status that asking again does not change, or did not."""
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


def unusable(url: str, malformed: Exception) -> ModelUnavailable:
    """It answers, but not what a model server answers: its fault, and no reply of the model's."""
    return ModelUnavailable(f"The model server at {url} sends no usable reply, also after retries: {malformed}.")


def from_client(error: openai.APIError, *, url: str, seconds: float) -> ModelError:
    """The error of a chat call, after the client's own retries."""
    if isinstance(error, openai.APITimeoutError):
        return too_slow(url, seconds)
    if isinstance(error, openai.APIStatusError):
        detail = error.message.removeprefix(f"Error code: {error.status_code} - ")
        code = f" ({error.code})" if isinstance(error.code, str) else ""
        return refused(url, error.status_code, _short(detail) + code)
    if (malformed := _cause(error, Malformed)) is not None:
        return unusable(url, malformed)
    if isinstance(error, openai.APIConnectionError):
        return unreachable(url)
    return ModelError(f"The model server at {url}: {_short(error.message)}")


def from_http(error: httpx.HTTPError, *, url: str, seconds: float) -> ModelError:
    """The error of a question about the server itself."""
    if isinstance(error, httpx.TimeoutException):
        return too_slow(url, seconds)
    if isinstance(error, httpx.HTTPStatusError):
        return refused(url, error.response.status_code, _short(error.response.text))
    if isinstance(error, Malformed):
        return unusable(url, error)
    return unreachable(url)


def _cause(error: BaseException, kind: type[Exception]) -> Exception | None:
    """The first error of a kind that this one came from."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, kind):
        cause = cause.__cause__
    return cause


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
