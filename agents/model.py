"""The interface of models: requests, replies with their probabilities, and the `Model` protocol."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from typing_extensions import TypedDict

from sleuth.tools.types import content_hash

DEMO_MODEL = "tiny"
"""The name of the embedded model, which shows how sleuth works: 135 million parameters are too few for most answers."""
EVIDENCE_CHECKER = "evidence-checker"
"""The name that gives a role to the evidence checker in SLEUTH_MODELS (`sleuth.graphs.evidence.reading_model`)."""


class Message(TypedDict):
    """One chat message; `role` is "system", "user" or "assistant"."""

    role: str
    content: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """Sampling parameters of a reply.

    `top_logprobs` > 0 requests log-probabilities of each reply token. `stop` has texts that end the reply and are its
    last words.
    """

    max_tokens: int = 512
    temperature: float = 0.0
    seed: int = 0
    top_logprobs: int = 0
    stop: tuple[str, ...] = ()


class Listener(Protocol):
    """A receiver of a reply's tokens while it is written. Its methods must not block."""

    def delta(self, text: str) -> None:
        """Receive further tokens."""
        ...

    def reset(self) -> None:
        """Discard the tokens so far: if the call is retried, its reply starts from the beginning."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One logical model call; retries have the same `call_id`.

    Attributes:
        call_id: the id of the call's task.
        role: the role's name.
        prompt: the prompt's name.
        messages: the rendered prompt; a last message of the assistant is continued by the reply.
        input: the role's input as plain JSON, for simulated and scripted models; servers never receive it.
        sampling: the sampling parameters.
        schema: a JSON schema that constrains the reply.
        choices: the only replies allowed; not together with `schema`.
        soft_token: an embedding that the server puts before the first user message: base64 of a tensor of shape
            (1, hidden size), as `torch.save` writes it.
        listener: receives the tokens of the reply; it has no effect on the reply.
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
        """Return all messages as one readable text, as stored in the archive."""
        return "\n\n".join(f"[{message['role']}]\n{message['content']}" for message in self.messages)

    def text_hash(self) -> str:
        """Return the name of `text()` in the archive."""
        return content_hash(self.text())


class TokenLogprob(TypedDict):
    """One reply token, its natural-log probability, and the likeliest alternatives."""

    token: str
    logprob: float
    top: dict[str, float]


class Usage(TypedDict):
    """Tokens of one call, as the server counted them; `cached_tokens` is a part of `prompt_tokens`."""

    prompt_tokens: int
    cached_tokens: int
    completion_tokens: int


class Reply(TypedDict):
    """A model's reply, as plain JSON for checkpoints.

    `text` is sanitized (`sleuth.tools.text.normalization`). `finish` is "stop" or "length" (cut off at `max_tokens`);
    `warnings` name every fallback used.
    """

    text: str
    finish: str
    model: str
    usage: Usage
    seconds: float
    logprobs: list[TokenLogprob] | None
    warnings: list[str]


class ReplyStream(Listener, Protocol):
    """A listener of one call that also receives the end of its reply."""

    def finish(self, reply: Reply) -> None:
        """End the stream of a reply that is complete."""
        ...


class ReplyStreams(Protocol):
    """The streams of a run's replies."""

    def listen(self, *, node: str, role: str, call: str) -> ReplyStream | None:
        """Return the stream of a call that begins; None if nobody subscribes."""
        ...

    def withdraw(self, *, node: str, role: str, call: str) -> None:
        """Discard the reply of a call that has ended."""
        ...


class Model(Protocol):
    """Protocol of models: the client of a server, or a scripted or simulated model."""

    @property
    def context_window(self) -> int:
        """Tokens that prompt and reply may have together."""
        ...

    async def call(self, request: Request) -> Reply:
        """Answer one request.

        Raises:
            ModelError: there is no usable reply after the retries for transient errors.
        """
        ...

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the tokens of a rendered prompt with the chat template, or a careful upper estimate."""
        ...


class NamedModel(Model, Protocol):
    """A model that returns the name of each role's model."""

    def name_of(self, role: str) -> str:
        """Return the name of the model of a role; empty if there is none."""
        ...


_NAME = r"(?:\w+:)?(?:think|thinking|thought|reasoning)"
_OPENING = rf"<{_NAME}>|\[THINK\]|◁think▷|<\|channel\|>analysis<\|message\|>"
_CLOSING = rf"</{_NAME}>|\[/THINK\]|◁/think▷|<\|channel\|>final[^<]*<\|message\|>"

_THOUGHT = re.compile(rf"(?:{_OPENING}).*?(?:{_CLOSING}|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(rf"\A.*(?:{_CLOSING})", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """Return the text without thoughts; those that are not closed extend to the end."""
    return _THOUGHT_END.sub("", _THOUGHT.sub("", text))


def first_token_probability(reply: Reply) -> tuple[float, str | None]:
    """Return P(yes) among yes and no at the answer's first token, and a warning if neither is among the alternatives.

    The likeliest alternatives are summed, ignoring case and white space. Use plain-text replies: a choice constraint
    renormalizes the probabilities.
    """
    tokens = answer_tokens(reply)
    top = tokens[0]["top"] if tokens else {}
    p_yes, p_no = (
        sum(math.exp(logprob) for token, logprob in top.items() if token.strip().lower() == word)
        for word in ("yes", "no")
    )
    if p_yes + p_no == 0.0:
        return 0.5, "neither yes nor no among the likeliest first tokens: 0.5"
    return p_yes / (p_yes + p_no), None


def perplexity(reply: Reply) -> float | None:
    """Return exp of the mean negative log-probability of the answer's tokens; None without log-probabilities.

    Means below -700 count as -700, so that the result is finite.
    """
    tokens = answer_tokens(reply)
    if not tokens:
        return None
    return math.exp(min(700.0, -sum(token["logprob"] for token in tokens) / len(tokens)))


def answer_tokens(reply: Reply) -> list[TokenLogprob]:
    """Return the tokens after thoughts and leading white space, without the end-of-reply token."""
    tokens = reply["logprobs"] or []
    last = tokens[-1]["token"] if tokens else ""
    if reply["finish"] == "stop" and tokens and not (last and reply["text"].endswith(last)):
        tokens = tokens[:-1]
    written = "".join(token["token"] for token in tokens)
    answer = without_thoughts(written)
    begin = len(written) - len(answer.lstrip())
    answered: list[TokenLogprob] = []
    end = 0
    for token in tokens:
        end += len(token["token"])
        if end > begin:
            answered.append(token)
    return answered
