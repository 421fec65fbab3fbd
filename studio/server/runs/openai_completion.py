"""A run as a chat completion: its steps as reasoning, its answer as the message, its citations as annotations."""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlencode

from pydantic_core import to_json

from sleuth.graphs.chat.question_rewriting import RewrittenQuestion
from sleuth.graphs.core.answer import Verdict, total_cost
from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.registry import runnable
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.schemas import openai as forms

STATUSES = {"invalid_request_error": 400, "conflict_error": 409, "insufficient_quota": 429, "store_error": 503}
"""HTTP statuses of the errors that end a run; others are errors of the model server."""

INTERRUPTED = "The server is shutting down. The run is resumed at its next start."
DONE = "data: [DONE]\n\n"


class RunFailed(Exception):
    """Error of a run that ended without an answer; `kind` is the error's type."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = 500 if kind == "internal_error" else STATUSES.get(kind, 502)


@dataclass(kw_only=True)
class ChatCompletionBuilder:
    """Builds one completion from the events of its run; `page` is the address of the browser page."""

    thread: str
    method: str
    rewriting: RewrittenQuestion
    page: str
    created: int = field(default_factory=lambda: int(time.time()))

    async def complete(self, events: AsyncIterator[Event]) -> forms.Completion:
        """Return the completion when the run has ended; raise RunFailed."""
        steps: list[str] = []
        async for name, data in _read(events):
            if name == "step":
                steps.append(_step_text(data))
            if name == "answer":
                return self._completion(data, "".join(steps))
        raise RunFailed(INTERRUPTED, "store_error")

    async def stream(self, events: AsyncIterator[Event], *, usage: bool) -> AsyncIterator[str]:
        """Yield the completion in chunks, as server-sent events; the last one may be an error."""
        yield self._chunk({"role": "assistant", "content": ""}, metadata=self._about())
        try:
            async for name, data in _read(events):
                if name == "step" and (text := _step_text(data)):
                    yield self._chunk({"reasoning_content": text})
                if name == "answer":
                    for chunk in self._final_chunks(data, usage=usage):
                        yield chunk
                    return
            raise RunFailed(INTERRUPTED, "store_error")
        except RunFailed as failed:
            error = {"message": str(failed), "type": failed.kind, "code": None, "param": None}
            yield _line({"error": error})

    def _final_chunks(self, answer: Mapping[str, Any], *, usage: bool) -> list[str]:
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
        answer_text = with_footnotes(verdict)
        annotations = [
            forms.Annotation(
                url_citation=forms.UrlCitation(
                    start_index=start,
                    end_index=end,
                    title=cited["title"],
                    url=self._url(at, cited["passage"]),
                )
            )
            for start, end, at in answer_text.marks
            if (cited := answer["citations"][at])["passage"]
        ]
        message = forms.CompletionMessage(content=answer_text.text, reasoning_content=steps, annotations=annotations)
        finish: Literal["length", "stop"] = "length" if answer["status"] == "out_of_budget" else "stop"
        return forms.Completion(
            id=self.id,
            created=self.created,
            model=self.method,
            choices=[forms.Choice(message=message, finish_reason=finish)],
            usage=self._usage(answer),
            metadata={**self._about(), "status": answer["status"]},
        )

    @property
    def id(self) -> str:
        """The id of the completion, in OpenAI's format."""
        return f"chatcmpl-{self.thread}"

    def _url(self, number: int, passage: str) -> str:
        """Return an address that opens the run in the page; it names the citation and its passage."""
        query = urlencode({"citation": number + 1, "passage": passage})
        return f"{self.page}#/runs/{quote(self.thread, safe='')}?{query}"

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
    """Yield names and data of a run's events; raise RunFailed if it ends without an answer."""
    async for event in events:
        data = json.loads(event.data)
        if event.name == "error":
            raise RunFailed(data["message"], data["type"])
        if event.name == "stopped":
            raise RunFailed("The run was stopped; it can be resumed.", "conflict_error")
        yield event.name, data


def _step_text(step: Mapping[str, Any]) -> str:
    """Return the name of a finished node and a line for each of its findings."""
    if step["state"] == "started":
        return ""
    node = f"{step['method']} {step['node']}" if step["part_of"] else step["node"]
    return "".join(
        f"{line}\n"
        for line in [node, *(f"  {each}" for each in runnable(step["method"]).summarize_update(step["update"]))]
    )
