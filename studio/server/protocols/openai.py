"""The parts that replies of OpenAI's APIs share: the answer with citations, the usage, and the errors of a run.

The steps of a run are the reasoning, its answer is the message, and its citations are annotations. OpenAI documents the
replies. They are plain JSON: importing `openai.types` loads 640 modules.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urlencode
from uuid import uuid4

from pydantic_core import to_json

from sleuth.graphs.chat.question_rewriting import RewrittenQuestion
from sleuth.graphs.core.answer import Verdict, is_weak, total_cost
from sleuth.graphs.evidence.answer_text import cited_parts, with_footnotes
from sleuth.graphs.registry import runnable
from sleuth.studio.server.protocols.streaming import encode_event
from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.schemas.errors import RunFailed
from sleuth.tools.text.markdown import escape_markdown

Events = AsyncIterator[Event]


@dataclass(kw_only=True)
class OpenAIReply:
    """One reply, from the answer or the events of its run; `page` is the address of the browser page.

    `thread` is empty for a reply to small talk or to a task of the client, which is no run.
    """

    thread: str
    method: str
    rewriting: RewrittenQuestion
    page: str
    has_marks: bool = True
    has_usage: bool = False
    created: int = field(default_factory=lambda: int(time.time()))

    def __post_init__(self) -> None:
        self.id = self.thread or uuid4().hex

    def metadata(self, answer: Mapping[str, Any] | None = None) -> dict[str, str]:
        """Return the thread, the question and, with an answer, its status."""
        about = {**({"thread": self.thread} if self.thread else {}), "question": self.rewriting.question}
        weak = {"support": "weak"} if answer and is_weak(answer["status"], answer.get("support")) else {}
        return {**about, "status": answer["status"], **weak} if answer else about

    def tokens(self, answer: Mapping[str, Any]) -> tuple[int, int, dict[str, int]]:
        """Return the tokens of the prompts, of the replies, and details of the prompts; the rewriting is included."""
        run, rewriting = answer["cost"], total_cost(self.rewriting.calls)
        prompt, reply, cached = (
            run[name] + rewriting[name] for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
        )
        return prompt, reply, {"cached_tokens": cached}

    def text(self, answer: Mapping[str, Any]) -> tuple[str, list[dict[str, Any]]]:
        """Return the answer with footnotes, and the citations of its marks; their addresses open the page.

        Without marks it is the text of the answer, and the citations of its sentences.
        """
        if not self.thread:  # words of ours
            return answer["text"], []
        text, parts = answer["text"], cited_parts(answer["text"], answer["citations"])
        places = [
            (len(escape_markdown(text[:start])), len(escape_markdown(text[:end])), at) for start, end, at in parts
        ]
        text = escape_markdown(text)
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


def encode(value: object, *, event: str = "") -> str:
    """Return a value as a server-sent event."""
    return encode_event(to_json(value).decode(), event=event)


async def read_answer(events: Events) -> tuple[dict[str, Any], str]:
    """Return the answer of a run and the text of its steps when it has ended; raise RunFailed."""
    steps = [step async for step in read_steps(events)]
    return steps[-1][1], "".join(text for text, _ in steps)


async def read_steps(events: Events) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Yield the text of each step, and the answer at the end; raise RunFailed if there is none."""
    async for event in events:
        data = json.loads(event.data)
        match event.name:
            case "step" if data["state"] == "finished":
                node = f"{data['method']} {data['node']}" if data["part_of"] else data["node"]
                findings = runnable(data["method"]).summarize_update(data["update"])
                yield escape_markdown("".join(f"{line}\n" for line in [node, *(f"  {each}" for each in findings)])), {}
            case "answer":
                yield "", data
                return
            case "error":
                raise RunFailed(data["message"], data["type"])
            case "stopped":
                raise RunFailed("The run was stopped; it can be resumed.", "conflict_error")
    raise RunFailed("The server is shutting down. The run is resumed at its next start.", "store_error")
