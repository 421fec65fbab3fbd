"""The seam between the roles and whatever answers them: one request in, one reply out."""

from dataclasses import dataclass, field
from typing import Any, Protocol

from typing_extensions import TypedDict

from sleuth.tools.types import content_hash


class Message(TypedDict):
    """One chat message; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How a reply is drawn. `top_logprobs` > 0 asks for log-probabilities of each reply token."""

    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    top_logprobs: int = 0


class Listener(Protocol):
    """Who hears a reply while it is written. Both return at once, whatever becomes of what they are told."""

    def delta(self, text: str) -> None:
        """Further words."""
        ...

    def reset(self) -> None:
        """What was said so far does not stand: if the call is made again, its reply begins anew."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One logical model call: the same `call_id` however often it has to be sent.

    `schema` (a JSON schema) or `choices` (the only replies allowed) constrain the reply; at most one of them is set.
    `input` is what the role was given, as plain JSON: stand-ins read it, servers never see it.
    `soft_token` is an embedding that the server puts in front of the first user message: base64 of a tensor of shape
    (1, hidden size), as `torch.save` writes it.
    A `listener` may be told the reply as it comes; it changes nothing about the reply.
    """

    call_id: str
    role: str
    prompt: str
    messages: tuple[Message, ...]
    input: dict[str, Any]
    sampling: Sampling = field(default_factory=Sampling)
    schema: dict[str, Any] | None = None
    choices: tuple[str, ...] | None = None
    soft_token: str | None = field(default=None, repr=False)
    listener: Listener | None = field(default=None, compare=False, repr=False)

    def text(self) -> str:
        """All messages as one readable text, as kept in the archive."""
        return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in self.messages)

    def text_hash(self) -> str:
        """The name of `text()` in the archive."""
        return content_hash(self.text())


class TokenLogprob(TypedDict):
    """One reply token, its natural-log probability, and the likeliest alternatives at its place."""

    token: str
    logprob: float
    top: dict[str, float]


class Usage(TypedDict):
    """Tokens of one call, as the server counted them; `cached_tokens` is a part of `prompt_tokens`."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class Reply(TypedDict):
    """What came back, as plain JSON, so that a checkpoint can hold it.

    `finish` is "stop" or "length" (cut off at `max_tokens`); `warnings` name every fall-back that was used.
    """

    text: str
    finish: str
    model: str
    usage: Usage
    seconds: float
    logprobs: list[TokenLogprob] | None
    warnings: list[str]


class Model(Protocol):
    """Anything that answers requests: the gateway to a server, or a stand-in in tests and simulations."""

    @property
    def context_window(self) -> int:
        """Tokens that prompt and reply may have together."""
        ...

    async def call(self, request: Request) -> Reply:
        """Answers one request.

        Raises:
            ModelError: nothing usable came back after the retries for transient faults.
        """
        ...

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Tokens of a rendered prompt with the chat template, or a careful upper estimate."""
        ...
