"""Tokens of replies on the run's custom stream while they are written. They are not stored, and may be withdrawn.

An item is {"node", "role", "call", "text"}; without `text` it withdraws the tokens of the call. The text of answers is
also on the `messages` stream.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from langgraph.config import get_config, get_stream_writer

from sleuth.agents.llm.answer_stream import AnswerStream, answer_in, has_message_stream
from sleuth.agents.llm.tracing import as_message
from sleuth.agents.model import Reply, Request
from sleuth.tools.text import sanitize


@dataclass(frozen=True, kw_only=True)
class TokenStream:
    """The stream of a run's replies.

    Attributes:
        listening: returns whether there are subscribers; called before each model call. By default that is the
            `messages` stream of the running graph: a model that streams may count its tokens less well.
        again: the superstep at which an interrupted run resumes. Its calls may have been streamed before, and start
            from scratch.
    """

    listening: Callable[[], bool] = has_message_stream
    again: int | None = None

    async def call(self, request: Request, send: Callable[[Request], Awaitable[Reply]], *, node: str) -> Reply:
        """Return the reply to a request, within its call's task; if the call fails, its tokens are withdrawn."""
        stream = _CallStream(node=node, role=request.role, call=request.call_id)
        if get_config()["metadata"]["langgraph_step"] == self.again:
            stream.withdraw()
        try:
            reply = await send(replace(request, listener=stream) if self.listening() else request)
        except BaseException:
            stream.reset()
            raise
        stream.finish(reply)
        return reply

    def withdraw(self, *, node: str, role: str, call: str) -> None:
        """Withdraw the tokens of a call that has ended."""
        _CallStream(node=node, role=role, call=call).withdraw()


class _CallStream:
    """The listener of one call, which writes its tokens to the run's stream."""

    def __init__(self, *, node: str, role: str, call: str) -> None:
        self._call = {"node": node, "role": role, "call": call}
        self._write = get_stream_writer()
        self._answer = AnswerStream(call)
        self._has_tokens = False

    def delta(self, text: str) -> None:
        """Write further tokens."""
        self._has_tokens = True
        item = {**self._call, "text": sanitize(text)}
        self._write(item)
        self._answer.write(item)

    def reset(self) -> None:
        """Withdraw the tokens written, if any."""
        if self._has_tokens:
            self.withdraw()

    def withdraw(self) -> None:
        """Withdraw all tokens of the call, also those of an earlier process."""
        self._has_tokens = False
        self._write(self._call)
        self._answer.write(self._call)

    def finish(self, reply: Reply) -> None:
        """End the message of a call that has written an answer."""
        if self._answer.has_text:
            text = answer_in(sanitize(reply["text"]), self._call["role"])
            self._answer.finish(as_message(reply).model_copy(update={"content": text}))
