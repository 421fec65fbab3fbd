"""Answers in LangGraph's `messages` stream: chunks of one message each, and at its end its usage.

The replies of roles are JSON or transcripts, so `sleuth.agents.llm.tracing` keeps them out of that stream. The text of
the answer in them is read from the items of the token stream (`sleuth.graphs.core.tokens`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager, CallbackManager, Callbacks
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.config import get_config
from pydantic_core import from_json

from sleuth.tools.langgraph_internals import StreamMessagesHandler
from sleuth.tools.text.markdown import escape_markdown

_TRANSCRIPTS = "searcher"
"""The role of search-trained models, whose answer is between tags."""


class AnswerText:
    """The text of an answer, read from the token stream of a run, as messages of LangGraph Server's `messages` stream.

    These are chunks, whole messages, and the `remove` of a message whose text is withdrawn.

    Attributes:
        written: the text so far.
    """

    def __init__(self, written: str = "") -> None:
        self.written = written
        self._replies: dict[str, str] = {}

    def read(self, item: Mapping[str, Any], id: str) -> list[dict[str, Any]]:
        """Return how an item of the token stream changes the message with this id; a step changes nothing."""
        if not item.get("is_answer"):
            return []
        call, replies = item["call"], self._replies
        if item["kind"] == "reset":
            text = "" if replies.pop(call, "") else self.written
        else:
            replies[call] = replies.get(call, "") + item["text"]
            text = answer_in(replies[call], item["role"]) or self.written
        changes = self.replace({"type": "AIMessageChunk", "id": id, "content": text})
        return [message for message in changes if message["content"] or message["type"] == "remove"]

    def replace(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Return how the message becomes this one: its last chunk if it continues the text, else the whole message."""
        text, written, id = message["content"], self.written, message["id"]
        self.written = text
        if written and text.startswith(written):
            return [{**message, "type": "AIMessageChunk", "content": text[len(written) :]}]
        return [{"type": "remove", "id": id, "content": ""}, message] if written else [message]


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


def message_handlers(callbacks: Callbacks) -> list[BaseCallbackHandler]:
    """Return the handlers of the `messages` stream."""
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else []
    return [handler for handler in handlers if isinstance(handler, StreamMessagesHandler)]


def is_streamed() -> bool:
    """Return whether the messages of the running graph are streamed."""
    return bool(message_handlers(get_config().get("callbacks")))


class AnswerStream:
    """One answer in the `messages` stream of the graph whose node is running; nothing happens if nobody streams it.

    Clients of chunks cannot remove text, so what follows withdrawn text has another id.
    """

    def __init__(self, id: str = "") -> None:
        """`id` is that of the message; by default that of the first model call that writes it."""
        self._id = id
        self._withdrawn = 0
        self._answer = AnswerText()
        self._events = MessageEvents()
        config = get_config()
        handlers = CallbackManager(message_handlers(config.get("callbacks")), metadata=dict(config["metadata"]))
        (self._run,) = handlers.on_chat_model_start({}, [[]])

    @property
    def has_text(self) -> bool:
        """Return whether a part of the answer was streamed."""
        return bool(self._answer.written)

    def write(self, item: Mapping[str, Any]) -> None:
        """Write what an item of the token stream adds to the answer; other items have no effect."""
        if self._run.handlers:
            self._send(self._answer.read(item, self._id or item.get("call", "")))

    def finish(self, message: AIMessage) -> None:
        """Write the rest of the message, with its usage and its other fields."""
        fields = message.model_dump(
            include={"type", "content", "additional_kwargs", "response_metadata", "usage_metadata"}
        )
        self._send(self._answer.replace({**fields, "id": self._id or str(message.id)}))

    def _send(self, messages: list[dict[str, Any]]) -> None:
        """Send messages as chunks and as events: a handler of the one ignores the other."""
        for message in messages:
            for event in self._events.write(message):
                self._run.on_stream_event(event)
            if message["type"] == "remove":
                self._withdrawn += 1
                continue
            self._id = message["id"]
            id = f"{self._id}-{self._withdrawn + 1}" if self._withdrawn else self._id
            position = "last" if "additional_kwargs" in message else None
            chunk = AIMessageChunk(**{**message, "type": "AIMessageChunk", "id": id, "chunk_position": position})
            self._run.on_llm_new_token(chunk.text, chunk=ChatGenerationChunk(message=chunk))


class MessageEvents:
    """Messages as events of LangGraph's streaming protocol.

    A message that begins again replaces its withdrawn text.
    """

    def __init__(self) -> None:
        self._text: str | None = None

    def write(self, message: dict[str, Any]) -> Iterator[Any]:
        """Yield the events of a message of `AnswerText`."""
        if message["type"] == "remove":
            if self._text is not None:
                yield {"event": "message-finish"}
            self._text = None
            return
        if self._text is None:
            self._text = ""
            yield {"event": "message-start", "role": "ai", "id": message["id"], "message_id": message["id"]}
            yield {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}}
        self._text += message["content"]
        yield {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": message["content"]}}
        if "additional_kwargs" in message:
            yield {"event": "content-block-finish", "index": 0, "content": {"type": "text", "text": self._text}}
            usage = message.get("usage_metadata")
            yield {"event": "message-finish", **({"usage": usage} if usage else {})}
            self._text = None
