"""Encoder of OpenAI's responses: the answer is streamed in one piece when the run has ended."""

from collections.abc import AsyncIterator, Mapping
from itertools import count
from typing import Any

from sleuth.studio.server.protocols.openai import Events, OpenAIReply, encode, read_answer
from sleuth.studio.server.schemas.errors import RunFailed


class OpenAIResponse(OpenAIReply):
    """A response; it has no steps."""

    def whole(self, answer: Mapping[str, Any], _steps: str) -> dict[str, Any]:
        """Return the response."""
        text, citations = self.text(answer)
        annotations = [{"type": "url_citation", **citation} for citation in citations]
        part = {"type": "output_text", "text": text, "annotations": annotations}
        message = {"type": "message", "id": f"msg-{self.id}", "role": "assistant", "content": [part]}
        is_cut = answer["status"] == "out_of_budget"
        prompt, reply, details = self.tokens(answer)
        return self._response(
            "incomplete" if is_cut else "completed",
            output=[{**message, "status": "completed"}],
            usage={
                "input_tokens": prompt,
                "input_tokens_details": details,
                "output_tokens": reply,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": prompt + reply,
            },
            incomplete_details={"reason": "max_output_tokens"} if is_cut else None,
            metadata=self.metadata(answer),
        )

    async def stream(self, events: Events) -> AsyncIterator[str]:
        """Yield the events of the response."""
        numbers = count()

        def line(kind: str, **fields: Any) -> str:  # noqa: ANN401 - JSON values
            data = {"type": f"response.{kind}", "sequence_number": next(numbers), **fields}
            return encode(data, event=data["type"])

        begun = self._response("in_progress")
        yield line("created", response=begun)
        yield line("in_progress", response=begun)
        try:
            response = self.whole(*await read_answer(events))
        except RunFailed as failed:
            error = {"code": failed.kind, "message": str(failed)}
            yield line("failed", response=self._response("failed", error=error))
            return
        (message,) = response["output"]
        (part,) = message["content"]
        at = {"item_id": message["id"], "output_index": 0, "content_index": 0}
        yield line("output_item.added", output_index=0, item={**message, "status": "in_progress", "content": []})
        yield line("content_part.added", **at, part={**part, "text": "", "annotations": []})
        yield line("output_text.delta", **at, delta=part["text"], logprobs=[])
        for index, annotation in enumerate(part["annotations"]):
            yield line("output_text.annotation.added", **at, annotation_index=index, annotation=annotation)
        yield line("output_text.done", **at, text=part["text"], logprobs=[])
        yield line("content_part.done", **at, part=part)
        yield line("output_item.done", output_index=0, item=message)
        yield line(response["status"], response=response)

    def _response(self, status: str, **fields: object) -> dict[str, Any]:
        return {
            "id": f"resp-{self.id}",
            "object": "response",
            "created_at": float(self.created),
            "model": self.method,
            "status": status,
            "output": [],
            "usage": None,
            "error": None,
            "incomplete_details": None,
            "metadata": self.metadata(),
            "tools": [],
            "tool_choice": "none",
            "parallel_tool_calls": False,
            **fields,
        }
