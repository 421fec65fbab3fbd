"""A run in the forms of OpenAI's APIs: a chat completion or a response, whole or streamed.

Its steps are the reasoning, its answer is the message, and its citations are annotations. The values are plain JSON:
importing `openai.types` loads 640 modules.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from pydantic_core import to_json

from sleuth.graphs.chat.question_rewriting import RewrittenQuestion
from sleuth.graphs.core.answer import Verdict, total_cost
from sleuth.graphs.evidence.answer_text import with_footnotes
from sleuth.graphs.registry import runnable
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.schemas.errors import STATUSES

INTERRUPTED = "The server is shutting down. The run is resumed at its next start."

Events = AsyncIterator[Event]


class RunFailed(Exception):
    """Error of a run that ended without an answer; `kind` is the error's type."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = next((status for _, status, name in reversed(STATUSES) if name == kind), 500)


@dataclass(kw_only=True)
class OpenAIReply:
    """Builds one reply from the answer or the events of its run; `page` is the address of the browser page.

    A chat completion contains everything. A response is the same in other fields.
    """

    thread: str
    method: str
    rewriting: RewrittenQuestion
    page: str
    created: int = field(default_factory=lambda: int(time.time()))

    def completion(self, answer: Mapping[str, Any], steps: str) -> dict[str, Any]:
        """Return the chat completion of an answer and the text of the steps before it."""
        text, citations = self._text(answer)
        annotations = [{"type": "url_citation", "url_citation": each} for each in citations]
        message = {"role": "assistant", "content": text, "reasoning_content": steps, "annotations": annotations}
        finish = "length" if answer["status"] == "out_of_budget" else "stop"
        run, rewriting = answer["cost"], total_cost(self.rewriting.calls)
        prompt, reply, cached = (
            run[name] + rewriting[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
        )
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": reply,
                "total_tokens": prompt + reply,
                "prompt_tokens_details": {"cached_tokens": cached},
            },
            "metadata": self._metadata(answer),
        }

    async def completion_chunks(self, events: Events, *, usage: bool) -> AsyncIterator[str]:
        """Yield the chat completion in chunks, as server-sent events; the last one may be an error."""
        yield self._chunk({"role": "assistant", "content": ""}, metadata=self._metadata())
        answer: dict[str, Any] = {}
        try:
            async for text, data in _read(events):
                answer = data
                if text:
                    yield self._chunk({"reasoning_content": text})
        except RunFailed as failed:
            yield _line({"error": {"message": str(failed), "type": failed.kind, "code": None, "param": None}})
            return
        made = self.completion(answer, "")
        [choice] = made["choices"]
        yield self._chunk({"content": choice["message"]["content"]})
        if annotations := choice["message"]["annotations"]:
            yield self._chunk({"annotations": annotations})
        yield self._chunk({}, finish=choice["finish_reason"], metadata=made["metadata"])
        if usage:
            yield _line({**self._head("chat.completion.chunk"), "choices": [], "usage": made["usage"]})
        yield "data: [DONE]\n\n"

    def response(self, answer: Mapping[str, Any], steps: str) -> dict[str, Any]:
        """Return the response of an answer."""
        made = self.completion(answer, steps)
        (choice,), usage = made["choices"], made["usage"]
        annotations = [{"type": "url_citation", **each["url_citation"]} for each in choice["message"]["annotations"]]
        part = {"type": "output_text", "text": choice["message"]["content"], "annotations": annotations}
        message = {
            "type": "message",
            "id": f"msg-{self.thread}",
            "role": "assistant",
            "status": "completed",
            "content": [part],
        }
        is_cut = choice["finish_reason"] == "length"
        return self._response(
            "incomplete" if is_cut else "completed",
            output=[message],
            usage={
                "input_tokens": usage["prompt_tokens"],
                "input_tokens_details": usage["prompt_tokens_details"],
                "output_tokens": usage["completion_tokens"],
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": usage["total_tokens"],
            },
            incomplete_details={"reason": "max_output_tokens"} if is_cut else None,
            metadata=made["metadata"],
        )

    async def response_events(self, events: Events) -> AsyncIterator[str]:
        """Yield the response as server-sent events; the text comes in one piece when the run has ended."""
        number = 0

        def line(kind: str, **fields: Any) -> str:  # noqa: ANN401 - JSON values
            nonlocal number
            data = {"type": f"response.{kind}", "sequence_number": number, **fields}
            number += 1
            return f"event: {data['type']}\n{_line(data)}"

        begun = self._response("in_progress")
        yield line("created", response=begun)
        yield line("in_progress", response=begun)
        try:
            response = self.response(*await read_answer(events))
        except RunFailed as failed:
            error = {"code": failed.kind, "message": str(failed)}
            yield line("failed", response=self._response("failed", error=error))
            return
        (message,) = response["output"]
        (part,) = message["content"]
        at = {"item_id": message["id"], "output_index": 0, "content_index": 0}
        yield line("output_item.added", output_index=0, item={**message, "status": "in_progress", "content": []})
        yield line("content_part.added", **at, part={**part, "text": "", "annotations": []})
        yield line("output_text.delta", **at, delta=part["text"], logprobs=[])
        for index, annotation in enumerate(part["annotations"]):
            yield line("output_text.annotation.added", **at, annotation_index=index, annotation=annotation)
        yield line("output_text.done", **at, text=part["text"], logprobs=[])
        yield line("content_part.done", **at, part=part)
        yield line("output_item.done", output_index=0, item=message)
        yield line(response["status"], response=response)

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None, **others: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _line({**self._head("chat.completion.chunk"), "choices": [choice], **others})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.thread}", "object": kind, "created": self.created, "model": self.method}

    def _response(self, status: str, **fields: object) -> dict[str, Any]:
        return {
            "id": f"resp-{self.thread}",
            "object": "response",
            "created_at": float(self.created),
            "model": self.method,
            "status": status,
            "output": [],
            "usage": None,
            "error": None,
            "incomplete_details": None,
            "metadata": self._metadata(),
            "tools": [],
            "tool_choice": "none",
            "parallel_tool_calls": False,
            **fields,
        }

    def _metadata(self, answer: Mapping[str, Any] | None = None) -> dict[str, str]:
        about = {"thread": self.thread, "question": self.rewriting.question}
        return {**about, "status": answer["status"]} if answer else about

    def _text(self, answer: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Return the answer with footnotes, and the citations of its marks; their addresses open the page."""
        verdict = Verdict(status=answer["status"], text=answer["text"], citations=answer["citations"])
        answer_text, citations = with_footnotes(verdict), []
        for start, end, at in answer_text.marks:
            cited = answer["citations"][at]
            if cited["passage"]:
                query = urlencode({"citation": at + 1, "passage": cited["passage"]})
                url = f"{self.page}#/runs/{quote(self.thread, safe='')}?{query}"
                citations.append({"start_index": start, "end_index": end, "title": cited["title"], "url": url})
        return answer_text.text, citations


def _line(value: object) -> str:
    return f"data: {to_json(value).decode()}\n\n"


async def read_answer(events: Events) -> tuple[dict[str, Any], str]:
    """Return the answer of a run and the text of its steps when it has ended; raise RunFailed."""
    read = [each async for each in _read(events)]
    return read[-1][1], "".join(text for text, _ in read)


async def _read(events: Events) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the text of each step, and the answer at the end; raise RunFailed if there is none."""
    async for event in events:
        data = json.loads(event.data)
        match event.name:
            case "step":
                yield _step_text(data), {}
            case "answer":
                yield "", data
                return
            case "error":
                raise RunFailed(data["message"], data["type"])
            case "stopped":
                raise RunFailed("The run was stopped; it can be resumed.", "conflict_error")
    raise RunFailed(INTERRUPTED, "store_error")


def _step_text(step: Mapping[str, Any]) -> str:
    """Return the name of a finished node and a line for each of its findings."""
    if step["state"] == "started":
        return ""
    node = f"{step['method']} {step['node']}" if step["part_of"] else step["node"]
    findings = runnable(step["method"]).summarize_update(step["update"])
    return "".join(f"{line}\n" for line in [node, *(f"  {each}" for each in findings)])
