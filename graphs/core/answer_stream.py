"""Answers in LangGraph's `messages` stream: chunks of one message each, and at its end its usage.

The replies of roles are JSON or transcripts, so `sleuth.agents.llm.tracing` keeps them out of that stream. The text of
the answer in them is read from the items of the token stream (`sleuth.graphs.core.tokens`).
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackManager, Callbacks
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.config import get_config
from pydantic_core import from_json

from sleuth.tools.langgraph_internals import StreamMessagesHandler, StreamMessagesHandlerV2
from sleuth.tools.text.normalization import escape_markdown

_TRANSCRIPTS = "searcher"
"""The role of search-trained models, whose answer is between tags."""


class AnswerText:
    """The text of an answer, read from the token stream of a run.

    Attributes:
        written: the text so far.
    """

    def __init__(self) -> None:
        self.written = ""
        self._replies: dict[str, str] = {}

    def read(self, item: Mapping[str, Any]) -> tuple[bool, str]:
        """Return whether the text so far is withdrawn, and the text that an item of the stream adds."""
        if item["kind"] == "step" or not item["is_answer"]:
            return False, ""
        if item["kind"] == "reset":
            self._replies.pop(item["call"], None)
            return self._withdraw(), ""
        reply = self._replies[item["call"]] = self._replies.get(item["call"], "") + item["text"]
        text = answer_in(reply, item["role"])
        if not text:
            return False, ""
        is_withdrawn = not text.startswith(self.written) and self._withdraw()
        added, self.written = text[len(self.written) :], text
        return is_withdrawn, added

    def _withdraw(self) -> bool:
        """Forget the text; return whether there was any."""
        had_text, self.written = bool(self.written), ""
        return had_text


def answer_in(reply: str, role: str) -> str:
    """Return the text of the answer in the beginning of a reply as Markdown: the field `answer`, or after its tag."""
    if role == _TRANSCRIPTS:
        return escape_markdown(reply.partition("<answer>")[2].partition("<")[0].lstrip())
    try:
        fields = from_json(reply, allow_partial="trailing-strings")
    except ValueError:
        return ""
    answer = fields.get("answer", "") if isinstance(fields, dict) else ""
    return escape_markdown(answer) if isinstance(answer, str) else ""


def message_handlers(callbacks: Callbacks) -> list[StreamMessagesHandler]:
    """Return the handlers of the `messages` stream."""
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else []
    return [handler for handler in handlers if isinstance(handler, StreamMessagesHandler)]


class AnswerStream:
    """One answer in the `messages` stream of the graph whose node is running; nothing happens if nobody streams it."""

    def __init__(self, id: str = "") -> None:
        """`id` is that of the message; by default that of the first model call that writes it."""
        self._id = id
        self._answer = AnswerText()
        config = get_config()
        self._writers: list[_ChunkWriter | MessageEvents] = []
        for handler in message_handlers(config.get("callbacks")):
            run = uuid4()
            handler.on_chat_model_start({}, [[]], run_id=run, metadata=dict(config["metadata"]))
            is_v2 = isinstance(handler, StreamMessagesHandlerV2)
            self._writers.append(
                MessageEvents(partial(handler.on_stream_event, run_id=run)) if is_v2 else _ChunkWriter(handler, run)
            )

    @property
    def has_text(self) -> bool:
        """Return whether a part of the answer was streamed."""
        return bool(self._answer.written)

    def write(self, item: Mapping[str, Any]) -> None:
        """Write what an item of the token stream adds to the answer; other items have no effect."""
        if not self._writers:
            return
        is_withdrawn, added = self._answer.read(item)
        if added:
            self._id = self._id or item["call"]
        for writer in self._writers:
            if is_withdrawn:
                writer.withdraw()
            if added:
                writer.add(self._id, added)

    def finish(self, message: AIMessage) -> None:
        """Write the rest of the message, with its usage and its other fields."""
        text = message.text
        is_continued = text.startswith(self._answer.written)
        added = text[len(self._answer.written) :] if is_continued else text
        for writer in self._writers:
            if not is_continued:
                writer.withdraw()
            writer.finish(self._id or str(message.id), message.model_copy(update={"content": added}))


class _ChunkWriter:
    """Writes chunks of messages. Clients cannot remove text, so what follows withdrawn text has another id."""

    def __init__(self, handler: StreamMessagesHandler, run: UUID) -> None:
        self._handler, self._run = handler, run
        self._withdrawn = 0

    def add(self, id: str, text: str) -> None:
        self._send(AIMessageChunk(content=text, id=self._numbered(id)))

    def withdraw(self) -> None:
        self._withdrawn += 1

    def finish(self, id: str, message: AIMessage) -> None:
        fields = message.model_dump(include={"content", "additional_kwargs", "response_metadata", "usage_metadata"})
        self._send(AIMessageChunk(**fields, id=self._numbered(id), chunk_position="last"))

    def _numbered(self, id: str) -> str:
        return f"{id}-{self._withdrawn + 1}" if self._withdrawn else id

    def _send(self, chunk: AIMessageChunk) -> None:
        self._handler.on_llm_new_token(chunk.text, chunk=ChatGenerationChunk(message=chunk), run_id=self._run)


class MessageEvents:
    """Writes messages as events of LangGraph's streaming protocol.

    A message that begins again replaces its withdrawn text.
    """

    def __init__(self, send: Callable[[dict[str, Any]], object]) -> None:
        """`send` is called with each event."""
        self._send_event = send
        self._text: str | None = None

    def add(self, id: str, text: str) -> None:
        """Add text to a message, which begins with its first text."""
        if self._text is None:
            self._text = ""
            self._send("message-start", role="ai", id=id, message_id=id)
            self._send("content-block-start", index=0, content={"type": "text", "text": ""})
        self._text += text
        self._send("content-block-delta", index=0, delta={"type": "text-delta", "text": text})

    def withdraw(self) -> None:
        """End a message whose text is not valid."""
        if self._text is not None:
            self._send("message-finish")
        self._text = None

    def finish(self, id: str, message: AIMessage) -> None:
        """Add the last text of a message, and its usage."""
        self.add(id, message.text)
        self._send("content-block-finish", index=0, content={"type": "text", "text": self._text})
        self._send("message-finish", **({"usage": message.usage_metadata} if message.usage_metadata else {}))
        self._text = None

    def _send(self, event: str, **data: Any) -> None:  # noqa: ANN401 - JSON
        self._send_event({"event": event, **data})
