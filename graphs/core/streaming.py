"""Events of a run, each with a `kind`; tokens are on its custom stream, and answers also on its `messages` stream.

An item of the custom stream is a `Delta` or a `Reset` without its run. Tokens are not stored. The replies of roles are
JSON or transcripts, so `sleuth.agents.llm.tracing` keeps them out of the `messages` stream. `AnswerStream` puts the
text of the answer in them into it: chunks of one message, and at its end its usage.
"""

from asyncio import create_task
from collections.abc import Callable, Coroutine, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, Self, TypeVar
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackManager, Callbacks
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.config import get_config, get_stream_writer
from pydantic_core import from_json

from sleuth.agents.llm.tracing import as_message
from sleuth.agents.model import Reply
from sleuth.graphs.core.answer import Answer
from sleuth.tools.langgraph_internals import StreamMessagesHandler, StreamMessagesHandlerV2
from sleuth.tools.text.markdown import escape_markdown
from sleuth.tools.text.normalization import sanitize

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A node started or finished; `update` is what it changed.

    `part_of` is the outer run if this thread is a sub-run. `task` is the same when a node that was interrupted starts
    again, and different for every other visit to it. `turn` is the id of the message in a chat that the step helps to
    answer; empty for other runs.
    """

    kind: Literal["step"] = "step"
    thread: str
    node: str
    state: Literal["started", "finished"]
    update: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    part_of: str = ""
    task: str = ""
    turn: str = ""


@dataclass(frozen=True, kw_only=True)
class Delta:
    """Tokens of a reply that is being written. They are not stored; the node's `Step` has the result.

    `call` is the id of the model call, as in the state's `calls` once it has ended. `is_answer` is true in the node
    that writes the answer of the run.
    """

    kind: Literal["delta"] = "delta"
    thread: str
    node: str
    role: str
    call: str
    text: str
    is_answer: bool = False
    method: str = ""
    part_of: str = ""


@dataclass(frozen=True, kw_only=True)
class Reset:
    """Revokes the deltas of a call: it is retried, or its reply cannot be used. A call without deltas has nothing to
    revoke.
    """

    kind: Literal["reset"] = "reset"
    thread: str
    node: str
    role: str
    call: str
    is_answer: bool = False
    method: str = ""
    part_of: str = ""


Event = Step | Delta | Reset | Answer
"""An event of a run; deltas and resets only reach subscribers."""

_KINDS: dict[str, type[Step | Delta | Reset]] = {"step": Step, "delta": Delta, "reset": Reset}


def parse_event(item: dict[str, Any]) -> Step | Delta | Reset:
    """Return the event of an item of a run's stream."""
    return _KINDS[item["kind"]](**item)


_TRANSCRIPTS = "searcher"
"""The role of search-trained models, whose answer is between tags."""


def message_handlers(callbacks: Callbacks) -> list[StreamMessagesHandler]:
    """Return the handlers of the `messages` stream."""
    handlers = callbacks.handlers if isinstance(callbacks, BaseCallbackManager) else []
    return [handler for handler in handlers if isinstance(handler, StreamMessagesHandler)]


@dataclass(frozen=True, kw_only=True)
class TokenStream:
    """The stream of a run's replies (`sleuth.agents.model.ReplyStreams`).

    Attributes:
        answers: the node whose replies contain the answer of the run, `Method.answers`.
        wants_tokens: returns whether there are subscribers; called before each model call. By default that is the
            `messages` stream of the running graph: a model that streams may count its tokens less well.
        resumed_step: the superstep at which an interrupted run resumes. Its calls may have been streamed before, and
            start from scratch.
    """

    answers: str = "answer"
    wants_tokens: Callable[[], bool] = lambda: bool(message_handlers(get_config().get("callbacks")))
    resumed_step: int | None = None

    def listen(self, *, node: str, role: str, call: str) -> "CallStream | None":
        """Return the stream of a call that begins, within its task; None if nobody subscribes."""
        stream = self._stream(node, role, call)
        if get_config()["metadata"]["langgraph_step"] == self.resumed_step:
            stream.withdraw()
        return stream if self.wants_tokens() else None

    def withdraw(self, *, node: str, role: str, call: str) -> None:
        """Withdraw the tokens of a call that has ended."""
        if self.wants_tokens():
            self._stream(node, role, call).withdraw()

    def _stream(self, node: str, role: str, call: str) -> "CallStream":
        return CallStream({"node": node, "role": role, "call": call, "is_answer": node == self.answers})


class CallStream:
    """The listener of one call, which writes its tokens to the run's stream (`sleuth.agents.model.ReplyStream`)."""

    def __init__(self, call: dict[str, Any]) -> None:
        """`call` has the fields that all items of the call share."""
        self._call = call
        self._write = get_stream_writer()
        self._answer = AnswerStream(call["call"])
        self._has_tokens = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if error:
            self.reset()

    def delta(self, text: str) -> None:
        """Write further tokens."""
        self._has_tokens = True
        self._send({"kind": "delta", **self._call, "text": sanitize(text)})

    def reset(self) -> None:
        """Withdraw the tokens written, if any."""
        if self._has_tokens:
            self.withdraw()

    def withdraw(self) -> None:
        """Withdraw all tokens of the call, also those of an earlier process."""
        self._has_tokens = False
        self._send({"kind": "reset", **self._call})

    def _send(self, item: dict[str, Any]) -> None:
        self._write(item)
        self._answer.write(item)

    def finish(self, reply: Reply) -> None:
        """End the message of a call that has written an answer."""
        if self._answer.has_text:
            text = answer_in(reply["text"], self._call["role"])
            self._answer.finish(as_message(reply).model_copy(update={"content": text}))


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


async def in_fresh_context(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a fresh `contextvars` context, so that LangGraph does not treat it as a subgraph of this node.

    Of the node's config only the callbacks are kept, so that a tracer of the caller also receives this work. The
    `messages` stream of the caller is left out: its messages come from this node.
    """
    variables = copy_context()
    outer = var_child_runnable_config.get()
    callbacks = outer.get("callbacks") if outer else None
    if isinstance(callbacks, BaseCallbackManager):
        remaining = callbacks.copy()
        for handler in message_handlers(callbacks):
            remaining.remove_handler(handler)
        callbacks = remaining
    variables.run(var_child_runnable_config.set, RunnableConfig(callbacks=callbacks) if callbacks else None)
    return await create_task(work, context=variables)
