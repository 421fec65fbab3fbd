"""Scripted model for tests: returns prepared replies, records the requests, and fails if there are too many."""

import json
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import BaseModel

from sleuth.agents.model import Message, Reply, Request, TokenLogprob, Usage

Scripted = BaseModel | dict[str, Any] | list[Any] | str | BaseException
"""An output, its JSON, a raw text, a whole `Reply` (see `reply`), or an error to raise."""

ANY_ROLE = "*"


class ScriptedModel:
    """A `Model` with prepared replies in order, for all roles together or, given a mapping, by role.

    Usage:

        model = ScriptedModel(["not JSON", Draft(answer="Varn")])  # the second reply repairs the first
        draft = await ModelCaller(model, archive, seed="").ask(DRAFT, input)
        model.done()
    """

    def __init__(
        self, replies: Iterable[Scripted] | Mapping[str, Iterable[Scripted]] = (), *, context_window: int = 8192
    ) -> None:
        by_role = replies if isinstance(replies, Mapping) else {ANY_ROLE: replies}
        self._replies = {role: deque(queue) for role, queue in by_role.items()}
        self._context_window = context_window
        self.requests: list[Request] = []
        self.counted = 0

    @property
    def context_window(self) -> int:
        """Tokens that prompt and reply may have together."""
        return self._context_window

    async def call(self, request: Request) -> Reply:
        """Return the next reply for the request's role."""
        self.requests.append(request)
        queue = self._replies.get(request.role, self._replies.get(ANY_ROLE))
        assert queue, f"no reply is left for call {len(self.requests)}, {request.prompt}:\n{request.text()}"
        scripted = queue.popleft()
        if isinstance(scripted, BaseException):
            raise scripted
        if isinstance(scripted, dict) and "usage" in scripted:
            return cast(Reply, scripted)
        if isinstance(scripted, BaseModel):
            scripted = scripted.model_dump_json()
        text = scripted if isinstance(scripted, str) else json.dumps(scripted, ensure_ascii=False)
        return reply(text, prompt_tokens=len(request.text().split()))

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return one token per word."""
        self.counted += 1
        return sum(len(message["content"].split()) for message in messages)

    def done(self) -> None:
        """Fail unless every reply was used."""
        left = {role: len(queue) for role, queue in self._replies.items() if queue}
        assert not left, f"unused replies: {left}"


def reply(
    text: str, *, finish: str = "stop", prompt_tokens: int = 0, logprobs: list[TokenLogprob] | None = None
) -> Reply:
    """Return a whole reply, for tests that need more than its text."""
    usage = Usage(prompt_tokens=prompt_tokens, cached_tokens=0, completion_tokens=len(text.split()))
    return Reply(text=text, finish=finish, model="scripted", usage=usage, seconds=0.0, logprobs=logprobs, warnings=[])
