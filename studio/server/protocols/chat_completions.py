"""Encoder of OpenAI's chat completions: the steps are streamed as reasoning, then the answer in one piece."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from sleuth.studio.server.protocols.openai import Events, OpenAIReply, encode, read_steps
from sleuth.studio.server.schemas.errors import RunFailed


class ChatCompletion(OpenAIReply):
    """A chat completion."""

    def whole(self, answer: Mapping[str, Any], steps: str) -> dict[str, Any]:
        """Return the chat completion."""
        text, citations = self.text(answer)
        annotations = [{"type": "url_citation", "url_citation": citation} for citation in citations]
        message = {"role": "assistant", "content": text, "reasoning_content": steps, "annotations": annotations}
        finish = "length" if answer["status"] == "out_of_budget" else "stop"
        prompt, reply, details = self.tokens(answer)
        return {
            **self._head("chat.completion"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": reply,
                "total_tokens": prompt + reply,
                "prompt_tokens_details": details,
            },
            "metadata": self.metadata(answer),
        }

    async def stream(self, events: Events) -> AsyncIterator[str]:
        """Yield the chunks of the chat completion."""
        yield self._chunk({"role": "assistant", "content": ""}, metadata=self.metadata())
        answer: dict[str, Any] = {}
        try:
            async for text, answer in read_steps(events):  # noqa: B007 - the last one
                if text:
                    yield self._chunk({"reasoning_content": text})
        except RunFailed as failed:
            yield encode({"error": {"message": str(failed), "type": failed.kind, "code": None, "param": None}})
            return
        completion = self.whole(answer, "")
        [choice] = completion["choices"]
        yield self._chunk({"content": choice["message"]["content"]})
        if annotations := choice["message"]["annotations"]:
            yield self._chunk({"annotations": annotations})
        yield self._chunk({}, finish=choice["finish_reason"], metadata=completion["metadata"])
        if self.has_usage:
            yield encode({**self._head("chat.completion.chunk"), "choices": [], "usage": completion["usage"]})
        yield "data: [DONE]\n\n"

    def _chunk(self, delta: dict[str, Any], *, finish: str | None = None, **others: object) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return encode({**self._head("chat.completion.chunk"), "choices": [choice], **others})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.id}", "object": kind, "created": self.created, "model": self.method}
