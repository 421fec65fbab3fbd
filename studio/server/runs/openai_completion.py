"""A run as a chat completion: its steps as reasoning, its answer as the message, its citations as annotations."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from pydantic_core import to_json

from sleuth.graphs.chat import RewrittenQuestion
from sleuth.graphs.core import Verdict, total_cost
from sleuth.graphs.evidence import with_footnotes
from sleuth.graphs.registry import runnable
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.schemas import openai as forms

STATUSES = {"invalid_request_error": 400, "conflict_error": 409, "insufficient_quota": 429, "store_error": 503}
"""HTTP statuses of what may end a run; the rest is the model server's."""

DONE = "data: [DONE]\n\n"


class RunFailed(Exception):
    """A run has ended without an answer; `kind` is the error's type."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = 500 if kind == "internal_error" else STATUSES.get(kind, 502)


@dataclass(kw_only=True)
class Completing:
    """One completion in the making, from the events of its run."""

    thread: str
    method: str
    rewriting: RewrittenQuestion
    created: int = field(default_factory=lambda: int(time.time()))

    async def whole(self, events: AsyncIterator[Event]) -> forms.Completion:
        """The completion at the run's end; raises RunFailed."""
        steps: list[str] = []
        async for name, data in _read(events):
            if name == "step":
                steps.append(_step_text(data))
            if name == "answer":
                return self._completion(data, "".join(steps))
        raise _interrupted()

    async def stream(self, events: AsyncIterator[Event], *, usage: bool) -> AsyncIterator[str]:
        """The same in chunks, as server-sent events; an error is one of them, and the last."""
        yield self._chunk({"role": "assistant", "content": ""}, metadata=self._about())
        try:
            async for name, data in _read(events):
                if name == "step" and (text := _step_text(data)):
                    yield self._chunk({"reasoning_content": text})
                if name == "answer":
                    for chunk in self._ending(data, usage=usage):
                        yield chunk
                    return
            raise _interrupted()
        except RunFailed as failed:
            error = {"message": str(failed), "type": failed.kind, "code": None, "param": None}
            yield _line({"error": error})

    def _ending(self, answer: Mapping[str, Any], *, usage: bool) -> list[str]:
        made = self._completion(answer, "")
        [choice] = made.choices
        annotations = [each.model_dump() for each in choice.message.annotations]
        chunks = [
            self._chunk({"content": choice.message.content}),
            *([self._chunk({"annotations": annotations})] if annotations else []),
            self._chunk({}, finish=choice.finish_reason, metadata=made.metadata),
            *([self._line(choices=[], usage=made.usage.model_dump())] if usage else []),
        ]
        return [*chunks, DONE]

    def _completion(self, answer: Mapping[str, Any], steps: str) -> forms.Completion:
        verdict = Verdict(status=answer["status"], text=answer["text"], citations=answer["citations"])
        told = with_footnotes(verdict)
        annotations = [
            forms.Annotation(
                url_citation=forms.UrlCitation(
                    start_index=start,
                    end_index=end,
                    title=cited["title"],
                    url=f"/v1/passages/{quote(cited['passage'], safe='')}",
                )
            )
            for cited, (start, end) in zip(answer["citations"], told.marks, strict=True)
            if cited["passage"]
        ]
        said = forms.Said(content=told.text, reasoning_content=steps, annotations=annotations)
        ended: Literal["length", "stop"] = "length" if answer["status"] == "out_of_budget" else "stop"
        return forms.Completion(
            id=self.id,
            created=self.created,
            model=self.method,
            choices=[forms.Choice(message=said, finish_reason=ended)],
            usage=self._usage(answer),
            metadata={**self._about(), "status": answer["status"]},
        )

    @property
    def id(self) -> str:
        """As OpenAI's begin."""
        return f"chatcmpl-{self.thread}"

    def _about(self) -> dict[str, str]:
        return {"thread": self.thread, "question": self.rewriting.question}

    def _usage(self, answer: Mapping[str, Any]) -> forms.Usage:
        costs = (answer["cost"], total_cost(self.rewriting.calls))
        prompt, reply, cached = (
            sum(cost[name] for cost in costs) for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
        )
        return forms.Usage(
            prompt_tokens=prompt,
            completion_tokens=reply,
            total_tokens=prompt + reply,
            prompt_tokens_details=forms.CachedTokens(cached_tokens=cached),
        )

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None, **others: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return self._line(choices=[choice], **others)

    def _line(self, **parts: object) -> str:
        about = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.method}
        return _line({**about, **parts})


def _line(value: object) -> str:
    return f"data: {to_json(value).decode()}\n\n"


async def _read(events: AsyncIterator[Event]) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Names and data of a run's events; raises RunFailed at an end that is no answer."""
    async for event in events:
        data = json.loads(event.data)
        if event.name == "error":
            raise RunFailed(data["message"], data["type"])
        if event.name == "stopped":
            raise RunFailed("The run was stopped; it can be resumed.", "conflict_error")
        yield event.name, data


def _interrupted() -> RunFailed:
    return RunFailed("The server is shutting down; the run goes on when it is back.", "store_error")


def _step_text(step: Mapping[str, Any]) -> str:
    """A finished node in a line, and what it found out in further ones."""
    if step["state"] == "started":
        return ""
    node = f"{step['method']} {step['node']}" if step["part_of"] else step["node"]
    return "".join(
        f"{line}\n"
        for line in [node, *(f"  {each}" for each in runnable(step["method"]).summarize_update(step["update"]))]
    )
