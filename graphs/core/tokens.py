"""Tokens of a run's replies on its custom stream, which are not stored: a `Delta` or a `Reset` without its run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langgraph.config import get_config, get_stream_writer

from sleuth.agents.llm.tracing import as_message
from sleuth.agents.model import Reply
from sleuth.graphs.core.answer_stream import AnswerStream, answer_in, is_streamed
from sleuth.tools.text.normalization import sanitize


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
    wants_tokens: Callable[[], bool] = is_streamed
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
