"""A reply read while it is written: the chunks of OpenAI's event stream, put together to the completion they are of."""

import json
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from typing import Any

from sleuth.agents.faults import Malformed

STREAMED: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
"""What asks for a stream that has all that a whole reply has."""


class NoUsage(Malformed):
    """A stream that does not say what it cost: of no use, and no passing fault."""


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether a response with these headers is one; a server may answer in one piece although it was asked."""
    return headers.get("content-type", "").startswith("text/event-stream")


async def gather(pieces: AsyncIterable[bytes], say: Callable[[str], None]) -> tuple[int, dict[str, Any]]:
    """The status and the body that the server would have sent in one piece; `say` is told the words as they come.

    Raises:
        Malformed: half an event, an end before the reply's, or no usage (NoUsage).
    """
    completion = _Completion()
    async for data in _events(pieces):
        if data == b"[DONE]":
            completion.ended = True
            break
        chunk = _object(data)
        if (error := _error(chunk)) is not None:
            return error
        if text := completion.add(chunk):
            say(text)
    return 200, completion.whole()


async def _events(pieces: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """The data of each event. Lines end at line feeds alone: JSON may hold what else counts as an end of line."""
    rest, data = b"", list[bytes]()
    async for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in (each.rstrip(b"\r") for each in lines):
            if line.startswith(b"data:"):
                data.append(line.removeprefix(b"data:").strip())
            elif not line and data:
                yield b"\n".join(data)
                data = []


def _object(data: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except ValueError as error:
        raise Malformed("an event of its stream is not JSON") from error
    if not isinstance(chunk, dict):
        raise Malformed("an event of its stream is no object")
    return chunk


def _error(chunk: dict[str, Any]) -> tuple[int, dict[str, Any]] | None:
    """What a server sends where it fails in the middle of a reply, as the response that it would have been before."""
    error = chunk if chunk.get("object") == "error" else chunk.get("error")
    if not error:
        return None
    code = error.get("code") if isinstance(error, dict) else None
    status = code if isinstance(code, int) and 400 <= code < 600 else 500
    return status, {"error": error if isinstance(error, dict) else {"message": str(error)}}


class _Completion:
    """A completion in the making; what comes again at its end (a finish, the usage) counts once."""

    def __init__(self) -> None:
        self.ended = False
        self._about: dict[str, Any] = {}
        self._texts: list[str] = []
        self._tokens: list[dict[str, Any]] = []
        self._finish: str | None = None
        self._usage: dict[str, Any] | None = None
        self._begun = False

    def add(self, chunk: dict[str, Any]) -> str:
        """Takes a chunk; gives the words that it adds."""
        self._about = self._about or {name: chunk.get(name) for name in ("id", "created", "model")}
        if isinstance(usage := chunk.get("usage"), dict):
            self._usage = usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        return self._continue(choice) if isinstance(choice, dict) else ""

    def _continue(self, choice: dict[str, Any]) -> str:
        self._begun = True
        self._finish = choice.get("finish_reason") or self._finish
        self._tokens += (choice.get("logprobs") or {}).get("content") or []
        text = (choice.get("delta") or {}).get("content")
        if not isinstance(text, str):
            return ""
        self._texts.append(text)
        return text

    def whole(self) -> dict[str, Any]:
        """The body of the completion."""
        if not self.ended and self._finish is None:
            raise Malformed("its stream ends before the reply does")
        if self._begun and self._usage is None:
            raise NoUsage("its stream has no usage")
        message = {"role": "assistant", "content": "".join(self._texts)}
        choice = {"index": 0, "message": message, "finish_reason": self._finish or "stop"}
        logprobs = {"content": self._tokens} if self._tokens else None
        choices = [{**choice, "logprobs": logprobs}] if self._begun else []
        return {**self._about, "object": "chat.completion", "choices": choices, "usage": self._usage}
