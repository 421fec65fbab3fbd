"""Completions of a server, whole or streamed, validated so that replies can be stored and used without checks."""

from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

from openai import APIConnectionError, APIError
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError

from sleuth.agents.llm.errors import BrokenStream, Malformed
from sleuth.agents.model import Reply, TokenLogprob, Usage
from sleuth.tools.text import sanitize

REASONED = "the model server sends replies as reasoning: its reasoning parser does not fit the model"
"""Warning of replies without any other text."""

STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""The options of a streamed request; the stream has everything that a whole reply has."""

MAX_TOKENS = 2**31
"""A larger count of tokens is refused; sums of smaller ones fit every store."""

LOWEST = -9999.0
"""The log-probability that servers send for zero; smaller ones are raised to it."""

T = TypeVar("T")


def token_count(value: object) -> int:
    """Return a number of tokens as a server reports it; 0 if it is none."""
    return value if type(value) is int and 0 < value <= MAX_TOKENS else 0


def _joined(content: object) -> object:
    """Return the text of a message in parts."""
    if not isinstance(content, list):
        return content
    texts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(text for text in texts if isinstance(text, str))


_Text = Annotated[str, AfterValidator(sanitize)]
_Count = Annotated[int, Field(strict=True, ge=0, le=MAX_TOKENS)]
# Rounding may lift the logarithm of one slightly above zero.
_LogProbability = Annotated[
    float, Field(strict=True, le=1e-3), AfterValidator(lambda value: min(max(value, LOWEST), 0.0))
]


class _Alternative(BaseModel):
    token: _Text
    logprob: _LogProbability


class _Token(_Alternative):
    top_logprobs: list[_Alternative] | None = None


class _LogProbabilities(BaseModel):
    content: list[_Token] | None = None


class _Details(BaseModel):
    cached_tokens: _Count | None = None


class _Usage(BaseModel):
    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    prompt_tokens_details: _Details | None = None


class _Message(BaseModel):
    content: Annotated[_Text | None, BeforeValidator(_joined)] = None
    reasoning: object = None
    reasoning_content: object = None

    @property
    def thoughts(self) -> str:
        """Its reasoning, under either name."""
        return next((text for text in (self.reasoning, self.reasoning_content) if text and isinstance(text, str)), "")


class Completion(BaseModel):
    """The first choice of a completion, with the model and usage; only its message is validated.

    Attributes:
        is_streamed: the server has streamed it.
    """

    message: _Message
    finish_reason: object = None
    logprobs: object = None
    model: object = None
    usage: object = None
    is_streamed: bool = False

    @property
    def is_reasoned(self) -> bool:
        """True if the whole reply is in the reasoning: it is complete, but there is no other text."""
        is_complete = self.finish_reason != "length" and bool(self.message.thoughts)
        return is_complete and not (self.message.content or "").strip()

    @property
    def text(self) -> str:
        """The text of its message."""
        return sanitize(self.message.thoughts) if self.is_reasoned else self.message.content or ""


def parse_completion(body: object) -> Completion:
    """Return a completion as the server sent it; raises Malformed if it has no message, BrokenStream for an error."""
    if not isinstance(body, dict):
        raise Malformed("it has no choices")
    if error := _reported(body):
        raise BrokenStream.of(error)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        raise Malformed("it has no choices")
    try:
        completion = Completion.model_validate(choices[0])
    except ValidationError as error:
        raise Malformed("its first choice has no message with a text") from error
    completion.model, completion.usage = body.get("model"), body.get("usage")
    return completion


def read_completion(completion: Completion, *, model: str, seconds: float, warnings: list[str]) -> Reply:
    """Return the reply in a completion.

    Unusable log-probabilities and token counts are treated like missing ones, with a warning.

    Args:
        completion: the completion.
        model: the name used if the completion has none.
        seconds: its duration.
        warnings: the fallbacks used.
    """
    usage, unusable_usage = _usage(completion.usage)
    logprobs, unusable_logprobs = _logprobs(completion.logprobs)
    name = completion.model
    return Reply(
        text=completion.text,
        finish="length" if completion.finish_reason == "length" else "stop",
        model=sanitize(name) if isinstance(name, str) and name else model,
        usage=usage,
        seconds=round(seconds, 4),
        logprobs=logprobs,
        warnings=[*warnings, *([REASONED] if completion.is_reasoned else []), *unusable_usage, *unusable_logprobs],
    )


def _usage(value: object) -> tuple[Usage, list[str]]:
    try:
        usage, warnings = _Usage.model_validate(value or {}), []
    except ValidationError:
        usage, warnings = _Usage(), ["the model server sends unusable token counts: the tokens are not counted"]
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
    counted = Usage(
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=min(cached or 0, usage.prompt_tokens),
        completion_tokens=usage.completion_tokens,
    )
    return counted, warnings


def _logprobs(value: object) -> tuple[list[TokenLogprob] | None, list[str]]:
    try:
        tokens = _LogProbabilities.model_validate(value or {}).content
    except ValidationError:
        return None, ["the model server sends unusable log-probabilities: probabilities are unavailable"]
    if not tokens:
        return None, []
    return [
        TokenLogprob(
            token=each.token,
            logprob=each.logprob,
            # likeliest first: of two pieces that read the same, the likelier one counts
            top={other.token: other.logprob for other in reversed(each.top_logprobs or [])},
        )
        for each in tokens
    ], []


async def assemble_completion(chunks: AsyncIterator[object], on_text: Callable[[str], None]) -> dict[str, Any]:
    """Return the completion of a stream of chunks, as the server would have sent it without streaming.

    The latest finish reason and usage count; some servers send no usage. `on_text` is called with each text.

    Raises:
        Malformed: a chunk is invalid, or the stream ends before the completion.
        BrokenStream: the server reports an error in the stream.
    """
    model = finish = usage = None
    texts: list[str] = []
    thoughts: list[str] = []
    tokens: list[Any] = []
    begun = False
    async for chunk in _checked(chunks):
        model = model or chunk.get("model")
        usage = _part(chunk, "usage", dict) or usage
        for choice in _part(chunk, "choices", list)[:1]:
            if not isinstance(choice, dict):
                continue
            begun = True
            finish = choice.get("finish_reason") or finish
            tokens += _part(_part(choice, "logprobs", dict), "content", list)
            delta = _part(choice, "delta", dict)
            thoughts.append(_part(delta, "reasoning", str) or _part(delta, "reasoning_content", str))
            if text := _part(delta, "content", str):
                texts.append(text)
                on_text(text)
    if usage is None and finish is None:
        raise Malformed("its stream ends before the reply does")
    message = {"role": "assistant", "content": "".join(texts), "reasoning": "".join(thoughts)}
    logprobs = {"content": tokens} if tokens else None
    choice = {"index": 0, "message": message, "finish_reason": finish or "stop", "logprobs": logprobs}
    return {"model": model, "choices": [choice] if begun else [], "usage": usage}


async def _checked(chunks: AsyncIterator[object]) -> AsyncIterator[dict[str, Any]]:
    """Yield the chunks of a stream; raise the error that one of them reports."""
    try:
        async for chunk in chunks:
            if not isinstance(chunk, dict):
                raise Malformed("an event of its stream is no object")
            if error := _reported(chunk):
                raise BrokenStream.of(error)
            yield chunk
    except APIConnectionError:
        raise
    except APIError as error:
        raise BrokenStream.of(error.body) from error
    except (ValueError, RecursionError) as error:
        raise Malformed("an event of its stream is not JSON") from error


def _reported(body: dict[str, Any]) -> object:
    """Return the error that a body with status 200 reports, if any."""
    return body if body.get("object") == "error" else body.get("error")


def _part(value: dict[str, Any], name: str, kind: type[T]) -> T:
    """Return an entry of a JSON object; the empty value of its type if it is missing or of another type."""
    part = value.get(name)
    return part if isinstance(part, kind) else kind()
