"""LangGraph's `messages` stream: the text of an answer while it is written, and the messages of the chat.

All chunks of an answer have the id that its message will have, so that clients join them.
"""

from collections.abc import Callable, Iterator
from typing import Any

from sleuth.agents.llm import AnswerText
from sleuth.graphs.chat.messages import reply_id_to

Metadata = Callable[[str], dict[str, Any]]
Tuple = tuple[dict[str, Any], dict[str, Any]]


class MessageStream:
    """The messages of one run for one client, each with metadata of the node that writes it."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._known: dict[str, object] | None = None
        self._id = ""
        self._answer = AnswerText()

    def write(self, reply: dict[str, Any]) -> Iterator[Tuple]:
        """Yield what a delta adds to the text of the answer; a reset removes the text."""
        id, about = self._id or str(reply["call"]), self._metadata(reply["node"])
        is_withdrawn, added = self._answer.read(reply)
        replaces_plan = self._answer.written == added and id in (self._known or {})
        if is_withdrawn or (added and replaces_plan):
            yield _removal(id), about
        if added:
            yield {"type": "AIMessageChunk", "id": id, "content": added}, about

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
        about, text, written = self._metadata("answer"), message["content"], self._answer.written
        if message["id"] == self._id and written and text.startswith(written):
            yield {**message, "type": "AIMessageChunk", "content": text[len(written) :]}, about
        else:
            if is_known or (written and message["id"] == self._id):
                yield _removal(message["id"]), about
            yield message, about
        self._answer = AnswerText()


def _removal(id: str) -> dict[str, Any]:
    return {"type": "remove", "id": id, "content": ""}
