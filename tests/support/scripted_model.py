"""Models for tests, which record their requests: with prepared replies, or with a function that replies."""

import asyncio
import json
import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel

from sleuth.agents.model import Message, Reply, Request, TokenLogprob, Usage

Scripted = BaseModel | dict[str, Any] | list[Any] | str | float | BaseException
"""An output, its JSON, a raw text, a whole `Reply` (see `reply`), the probability of a yes, or an error to raise."""

ANY_ROLE = "*"


@dataclass
class Replying:
    """A model whose reply depends on the request alone, so that calls may come in any order and be repeated."""

    answer: Callable[[Request], Any]
    requests: list[Request] = field(default_factory=list)
    context_window: int = 8192
    name: str = "scripted"

    async def call(self, request: Request) -> Reply:
        """Return the reply to a request."""
        self.requests.append(request)
        said = self.answer(request)
        if isinstance(said, BaseException):
            raise said
        await asyncio.sleep(0)
        return {**_whole(said, request), "model": self.name}

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return one token per word."""
        return sum(len(message["content"].split()) for message in messages)


class ScriptedModel(Replying):
    """A `Model` with prepared replies in order, for all roles together or, given a mapping, by role.

    It fails if there are too many requests.

    Usage:

        model = ScriptedModel(["not JSON", Draft(answer="Varn")])  # the second reply repairs the first
        draft = await ModelCaller(model, archive, seed="").ask(DRAFT, input)
        model.done()
    """

    def __init__(
        self, replies: Iterable[Scripted] | Mapping[str, Iterable[Scripted]] = (), *, context_window: int = 8192
    ) -> None:
        super().__init__(self._next, context_window=context_window)
        by_role = replies if isinstance(replies, Mapping) else {ANY_ROLE: replies}
        self._replies: dict[str, deque[Scripted]] = {role: deque(queue) for role, queue in by_role.items()}
        self.counted = 0

    def _next(self, request: Request) -> Scripted:
        queue = self._replies.get(request.role, self._replies.get(ANY_ROLE))
        assert queue, f"no reply is left for call {len(self.requests)}, {request.prompt}:\n{request.text()}"
        return queue.popleft()

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return one token per word."""
        self.counted += 1
        return await super().count_tokens(messages, role=role)

    def done(self) -> None:
        """Fail unless every reply was used."""
        left = {role: len(queue) for role, queue in self._replies.items() if queue}
        assert not left, f"unused replies: {left}"


def _whole(said: Any, request: Request) -> Reply:
    if isinstance(said, dict) and "usage" in said:
        return cast(Reply, said)
    if isinstance(said, float):
        return judged(said)
    if isinstance(said, BaseModel):
        said = said.model_dump_json()
    text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False)
    return reply(text, prompt_tokens=len(request.text().split()))


def judged(yes: float) -> Reply:
    """Return a one-token reply that starts with a yes of this probability, or a no with the rest of 0.8."""
    shares = {"Yes": yes * 0.8, " no": (1 - yes) * 0.8, "Well": 0.2}
    top = {word: math.log(share) for word, share in shares.items() if share}
    word = max(top, key=lambda each: top[each])
    return reply(word.strip(), finish="length", logprobs=[TokenLogprob(token=word, logprob=top[word], top=top)])


def reply(
    text: str, *, finish: str = "stop", prompt_tokens: int = 0, logprobs: list[TokenLogprob] | None = None
) -> Reply:
    """Return a whole reply, for tests that need more than its text."""
    usage = Usage(prompt_tokens=prompt_tokens, cached_tokens=0, completion_tokens=len(text.split()))
    return Reply(text=text, finish=finish, model="scripted", usage=usage, seconds=0.0, logprobs=logprobs, warnings=[])
