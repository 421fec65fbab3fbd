"""LangGraph's `messages` stream: the text of an answer while it is written, and the messages of the chat.

All chunks of an answer have the id that its message will have, so that clients join them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from pydantic_core import from_json

from sleuth.graphs.chat.messages import reply_id_to

_ANSWERING = {"answer", "integrate"}
"""Nodes that write the answer of a run."""

Metadata = Callable[[str], dict[str, Any]]
Tuple = tuple[dict[str, Any], dict[str, Any]]


class MessageStream:
    """The messages of one run for one client, each with metadata of the node that writes it."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._known: dict[str, object] | None = None
        self._id = ""
        self._replies: dict[str, str] = {}
        self._written = ""

    def write(self, reply: dict[str, Any]) -> Iterator[Tuple]:
        """Yield what a delta adds to the text of the answer; a reset removes the text."""
        if reply["node"] not in _ANSWERING:
            return
        call, about = str(reply["call"]), self._metadata(reply["node"])
        id = self._id or call
        if "text" not in reply:
            self._replies.pop(call, None)
            yield from self._remove(id, about)
            return
        self._replies[call] = self._replies.get(call, "") + reply["text"]
        text = answer_in(self._replies[call])
        if text and not text.startswith(self._written):
            yield from self._remove(id, about)
        if text and not self._written and id in (self._known or {}):  # a plan, which the answer replaces
            yield _removal(id), about
        if added := text[len(self._written) :]:
            self._written = text
            yield {"type": "AIMessageChunk", "id": id, "content": added}, about

    def _remove(self, id: str, about: dict[str, Any]) -> Iterator[Tuple]:
        if self._written:
            self._written = ""
            yield _removal(id), about

    def complete(self, messages: list[dict[str, Any]], *, is_final: bool) -> list[Tuple]:
        """Return the messages of ours that a state adds or changes; of one whose text was streamed, the rest of it."""
        now = {message["id"]: message["content"] for message in messages}
        known = self._known
        if known is None:  # the client has received none of this run
            known = {message["id"]: message["content"] for message in (messages[:-1] if is_final else messages)}
        added = [each for each in messages if each["type"] == "ai" and known.get(each["id"]) != each["content"]]
        self._known = now
        asked = next((each["id"] for each in reversed(messages) if each["type"] == "human"), None)
        found = [part for message in added for part in self._whole(message, is_known=message["id"] in known)]
        self._id = reply_id_to(asked) if asked else ""
        return found

    def _whole(self, message: dict[str, Any], *, is_known: bool) -> Iterator[Tuple]:
        about, text = self._metadata("answer"), message["content"]
        if message["id"] == self._id and self._written and text.startswith(self._written):
            yield {**message, "type": "AIMessageChunk", "content": text[len(self._written) :]}, about
        else:
            if is_known or (self._written and message["id"] == self._id):
                yield _removal(message["id"]), about
            yield message, about
        self._written = ""


def _removal(id: str) -> dict[str, Any]:
    return {"type": "remove", "id": id, "content": ""}


def answer_in(reply: str) -> str:
    """Return the text of the answer in the beginning of a reply: its field `answer`."""
    try:
        found = from_json(reply, allow_partial="trailing-strings")
    except ValueError:
        return ""
    answer = found.get("answer", "") if isinstance(found, dict) else ""
    return answer if isinstance(answer, str) else ""
