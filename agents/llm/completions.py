"""Completions of a server, whole or streamed, reduced to what replies need."""

import json
from typing import Any

from sleuth.agents.llm.errors import ServerError
from sleuth.agents.model import Listener, Reply, TokenLogprob, Usage
from sleuth.tools.http import UnusableReply
from sleuth.tools.text.normalization import sanitize

REASONED = "the model server sends replies as reasoning: its reasoning parser does not fit the model"
"""Warning of replies without any other text."""

STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""The options of a streamed request; the stream has everything that a whole reply has."""

MAX_TOKENS = 2**31
"""A larger count of tokens is refused; sums of smaller ones fit every store."""


class Completion:
    """The first choice of a completion, whole or in chunks, with the model and usage."""

    def __init__(self, listener: Listener | None = None) -> None:
        """`listener` receives each text."""
        self._listener = listener
        self.content, self.thoughts = "", ""
        self.finish_reason: object = None
        self.model: object = None
        self.usage: object = None
        self.tokens: list[Any] = []
        self._has_choice = False

    def parse(self, text: str | bytes) -> None:
        """Add a chunk, or a whole completion, as JSON.

        Raises:
            ServerError: it reports an error.
            UnusableReply: it is no JSON, or no object.
        """
        try:
            body = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UnusableReply("its body is not JSON") from error
        self.add(body)

    def add(self, body: object) -> None:
        """Add a chunk, or a whole completion. The latest finish reason and usage count."""
        if not isinstance(body, dict):
            raise UnusableReply("its body is no object")
        if body.get("object") == "error" or body.get("error"):
            raise ServerError(body)
        self.model = self.model or body.get("model")
        self.usage = _object(body, "usage") or self.usage
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return
        self._has_choice = True
        self.finish_reason = choice.get("finish_reason") or self.finish_reason
        tokens = _object(choice, "logprobs").get("content")
        self.tokens += tokens if isinstance(tokens, list) else []
        message = _object(choice, "delta") or _object(choice, "message")
        self.thoughts += _text(message.get("reasoning")) or _text(message.get("reasoning_content"))
        text = _text(message.get("content"))
        self.content += text
        self._deliver(text)

    def end(self) -> None:
        """Raise UnusableReply if it has not ended; some servers send no usage, or nothing but the usage."""
        if self.usage is None and self.finish_reason is None:
            raise UnusableReply("its stream ends before the reply does")
        if not self._has_choice:
            raise UnusableReply("it has no choices")
        if self.is_reasoned:
            self._deliver(self.text)

    def _deliver(self, text: str) -> None:
        if self._listener and text:
            self._listener.delta(text)

    @property
    def is_reasoned(self) -> bool:
        """True if the whole reply is in the reasoning: it is complete, but there is no other text."""
        return self.finish_reason != "length" and bool(self.thoughts) and not self.content.strip()

    @property
    def text(self) -> str:
        """The text of its message."""
        return sanitize(self.thoughts if self.is_reasoned else self.content)

    def reply(self, *, model: str, seconds: float) -> Reply:
        """Return it as a reply. Unusable log-probabilities and token counts are treated like missing ones.

        Args:
            model: the name used if the completion has none.
            seconds: its duration.
        """
        try:
            logprobs = [
                TokenLogprob(
                    token=sanitize(token["token"]),
                    logprob=_logprob(token["logprob"]),
                    # likeliest first: of two pieces that read the same, the likelier one counts
                    top={
                        sanitize(other["token"]): _logprob(other["logprob"])
                        for other in reversed(token.get("top_logprobs") or [])
                    },
                )
                for token in self.tokens
            ]
        except (AttributeError, KeyError, TypeError, ValueError):
            logprobs = []
        usage = self.usage if isinstance(self.usage, dict) else {}
        prompt = token_count(usage.get("prompt_tokens"))
        cached = token_count(_object(usage, "prompt_tokens_details").get("cached_tokens"))
        return Reply(
            text=self.text,
            finish="length" if self.finish_reason == "length" else "stop",
            model=sanitize(self.model) if isinstance(self.model, str) and self.model else model,
            usage=Usage(
                prompt_tokens=prompt,
                cached_tokens=min(cached, prompt),
                completion_tokens=token_count(usage.get("completion_tokens")),
            ),
            seconds=round(seconds, 4),
            logprobs=logprobs or None,
            warnings=[REASONED] if self.is_reasoned else [],
        )


def token_count(value: object) -> int:
    """Return a number of tokens as a server reports it; 0 if it is none."""
    return value if type(value) is int and 0 < value <= MAX_TOKENS else 0


def _logprob(value: float) -> float:
    """Return a log-probability that every computation can use: servers send -9999 for zero, or more than 0 for one."""
    if not value <= 1e-3:
        raise ValueError(value)
    return float(min(max(value, -9999.0), 0.0))


def _text(content: object) -> str:
    """Return a text; that of a message in parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text")
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def _object(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object in a JSON object; an empty one if it is missing or of another type."""
    part = value.get(name)
    return part if isinstance(part, dict) else {}
