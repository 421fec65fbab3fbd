"""OpenAI's APIs: each method is a model, each completion or response a run that can be inspected afterwards.

The steps of a run are the reasoning, its answer is the message, and its citations are annotations. OpenAI documents the
replies; the OpenAPI description contains the requests. The replies are plain JSON: importing `openai.types` loads 640
modules.
"""

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast
from urllib.parse import quote, urlencode
from uuid import uuid4

from fastapi import APIRouter, Request, Response
from pydantic_core import to_json
from starlette.responses import StreamingResponse

from sleuth.graphs.chat.question_rewriting import RewrittenQuestion
from sleuth.graphs.chat.small_talk import REPLIES, is_command, small_talk_reply
from sleuth.graphs.core.answer import Verdict, is_weak, total_cost
from sleuth.graphs.evidence.answer_text import cited_parts, with_footnotes
from sleuth.graphs.registry import METHODS, runnable
from sleuth.graphs.runs.request import RunRequest, check_question
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.runs.keep_alive import with_keep_alive
from sleuth.studio.server.schemas import openai as forms
from sleuth.studio.server.schemas.checked import CheckedRoute
from sleuth.studio.server.schemas.errors import STATUSES, respond
from sleuth.studio.server.state import Access, AccessDep
from sleuth.tools.errors import UnknownName, UsageError

router = APIRouter(prefix="/v1", tags=["chat"], route_class=CheckedRoute)

CLIENT_CLOSED_REQUEST = 499
"""Status for the log only: the client has closed the connection."""

LOOK_SECONDS = 1.0
"""Seconds between two looks whether the client has closed the connection."""

STREAM: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}

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

    `thread` is empty for a reply to small talk, which is no run.

    A chat completion contains everything. A response is the same in other fields.
    """

    thread: str
    method: str
    rewriting: RewrittenQuestion
    page: str
    has_marks: bool = True
    created: int = field(default_factory=lambda: int(time.time()))
    id: str = ""

    def __post_init__(self) -> None:
        self.id = self.thread or uuid4().hex

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
            "id": f"msg-{self.id}",
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
        return {"id": f"chatcmpl-{self.id}", "object": kind, "created": self.created, "model": self.method}

    def _response(self, status: str, **fields: object) -> dict[str, Any]:
        return {
            "id": f"resp-{self.id}",
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
        about = {**({"thread": self.thread} if self.thread else {}), "question": self.rewriting.question}
        weak = {"support": "weak"} if answer and is_weak(answer["status"], answer.get("support")) else {}
        return {**about, "status": answer["status"], **weak} if answer else about

    def _text(self, answer: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Return the answer with footnotes, and the citations of its marks; their addresses open the page.

        Without marks it is the text of the answer, and the citations of its sentences.
        """
        text, places = answer["text"], cited_parts(answer["text"], answer["citations"])
        if self.has_marks:
            verdict = {name: answer[name] for name in ("status", "text", "citations", "support") if name in answer}
            marked = with_footnotes(cast(Verdict, verdict))
            text, places = marked.text, marked.marks
        citations = []
        for start, end, at in places:
            cited = answer["citations"][at]
            if cited["passage"]:
                query = urlencode({"citation": at + 1, "passage": cited["passage"]})
                url = f"{self.page}#/runs/{quote(self.thread, safe='')}?{query}"
                citations.append({"start_index": start, "end_index": end, "title": cited["title"], "url": url})
        return text, citations


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


@router.get("/models")
def models() -> dict[str, Any]:
    """Return the methods as models."""
    return {"object": "list", "data": [_model(name) for name in METHODS]}


@router.get("/models/{name}", response_model=None)
def model(name: str) -> dict[str, Any] | Response:
    """Return one method as a model."""
    return _model(name) if name in METHODS else _unknown_model(name)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "sleuth"}


def _unknown_model(name: str) -> Response:
    problem = f"Unknown method {name!r}. Available: {', '.join(METHODS)}."
    return respond(404, problem, kind="invalid_request_error", code="model_not_found", param="model")


@router.post("/chat/completions", response_model=None, responses=STREAM)
async def complete(form: forms.ChatForm, request: Request, access: AccessDep) -> dict[str, Any] | Response:
    """Answer the last message; a follow-up is first rewritten into a self-contained question. Small talk is no run.

    Closing the connection cancels the run. `metadata` contains its `thread`, with which it can be resumed, shown and
    forked, the `question` and the `status`.
    """
    usage = bool(form.stream_options and form.stream_options.include_usage)
    streamed = partial(OpenAIReply.completion_chunks, usage=usage)
    return await _answer(form, request, access, whole=OpenAIReply.completion, streamed=streamed)


@router.post("/responses", response_model=None, responses=STREAM)
async def respond_to(form: forms.ResponseForm, request: Request, access: AccessDep) -> dict[str, Any] | Response:
    """Answer a question in the form of OpenAI's Responses API; see the chat completions."""
    whole, streamed = OpenAIReply.response, OpenAIReply.response_events
    return await _answer(form.to_chat(), request, access, whole=whole, streamed=streamed)


@router.post("/embeddings")
async def embed(form: forms.EmbeddingForm, access: AccessDep) -> dict[str, Any]:
    """Embed texts as the passages of documents are embedded."""
    collection = await access.server.tenants.collection(access.owner)
    embedder = collection.embedder
    if embedder is None:
        raise UsageError("The server has no embedder (SLEUTH_EMBEDDER=none).")
    if form.model != embedder.name:
        raise UnknownName("model", form.model, [embedder.name], f"The server embeds with {embedder.name}.")
    async with collection.search_slots:
        vectors = await asyncio.to_thread(embedder.embed_passages, form.texts())
    is_packed = form.encoding_format == "base64"
    rows = [b64encode(row.astype("<f4").tobytes()).decode() if is_packed else row.tolist() for row in vectors]
    data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)]
    return {
        "object": "list",
        "data": data,
        "model": embedder.name,
        "usage": {"prompt_tokens": 0, "total_tokens": 0},  # they are not counted
    }


async def _answer(
    form: forms.ChatForm,
    request: Request,
    access: Access,
    *,
    whole: Callable[[OpenAIReply, dict[str, Any], str], dict[str, Any]],
    streamed: Callable[[OpenAIReply, AsyncIterator[Event]], AsyncIterator[str]],
) -> dict[str, Any] | Response:
    """Start the run of the last message, and return its reply."""
    if form.model not in METHODS:
        return _unknown_model(form.model)
    question = check_question(form.question())
    if text := REPLIES["introduction"] if is_command(question) else small_talk_reply(question):
        thread, events, rewriting = "", _said(text), RewrittenQuestion(question=question, calls={}, warnings=[])
    else:
        await access.require_ready()
        rewriting = await access.rewrite_follow_up(question, form.turns(), form.model)
        thread = await access.start(
            RunRequest(
                question=rewriting.question,
                method=form.model,
                values=form.sleuth.values,
                budget=form.sleuth.budget.budget(),
            )
        )
        events = access.follow(thread)
    reply = OpenAIReply(
        thread=thread, method=form.model, rewriting=rewriting, page=str(request.base_url), has_marks=form.sleuth.marks
    )
    cancel = partial(access.server.run_worker.cancel_nowait, thread, after=0)
    if not form.stream:
        return await _unless_closed(partial(whole, reply), events, request, cancel)
    lines = with_keep_alive(streamed(reply, events), on_disconnect=cancel)
    return StreamingResponse(lines, media_type="text/event-stream", headers={"Cache-Control": "no-cache"})


async def _said(text: str) -> AsyncGenerator[Event]:
    """Yield the only event of a reply without a run."""
    answer = {**Verdict(status="answered", text=text, citations=[]), "cost": total_cost({})}
    yield Event(thread="", id=0, name="answer", key="", data=to_json(answer).decode())


async def _unless_closed(
    whole: Callable[[dict[str, Any], str], dict[str, Any]],
    events: AsyncGenerator[Event],
    request: Request,
    cancel: Callable[[], None],
) -> dict[str, Any] | Response:
    """Return the reply, unless the client closes the connection first."""
    async with aclosing(events):
        answer = asyncio.create_task(read_answer(events))
        try:
            while not answer.done():
                if await request.is_disconnected():
                    return Response(status_code=CLIENT_CLOSED_REQUEST)
                await asyncio.wait({answer}, timeout=LOOK_SECONDS)
            return whole(*answer.result())
        except RunFailed as failed:
            return respond(failed.status, str(failed), kind=failed.kind)
        finally:
            cancel()
            answer.cancel()
            await asyncio.wait({answer})
