"""A run in the form of OpenAI's Responses API, made from its chat completion."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import to_json

from sleuth.studio.server.runs.event_log import Event
from sleuth.studio.server.runs.openai_completion import ChatCompletionBuilder, RunFailed
from sleuth.studio.server.schemas import openai, responses


@dataclass(kw_only=True)
class ResponseBuilder:
    """Builds one response from the events of its run."""

    completion: ChatCompletionBuilder

    async def complete(self, events: AsyncIterator[Event]) -> responses.Response:
        """Return the response when the run has ended; raise RunFailed."""
        return self._of(await self.completion.complete(events))

    async def stream(self, events: AsyncIterator[Event]) -> AsyncIterator[str]:
        """Yield the response as server-sent events; the text comes in one piece when the run has ended."""
        number = 0

        def line(kind: str, **fields: Any) -> str:  # noqa: ANN401 - JSON values
            nonlocal number
            data = to_json({"type": kind, "sequence_number": number, **fields}).decode()
            number += 1
            return f"event: {kind}\ndata: {data}\n\n"

        begun = self._empty("in_progress")
        yield line("response.created", response=begun)
        yield line("response.in_progress", response=begun)
        try:
            response = await self.complete(events)
        except RunFailed as failed:
            error = responses.ResponseError(code=failed.kind, message=str(failed))
            yield line("response.failed", response=self._empty("failed", error=error))
            return
        (message,) = response.output
        (part,) = message.content
        at = {"item_id": message.id, "output_index": 0, "content_index": 0}
        item = message.model_copy(update={"status": "in_progress", "content": []})
        empty = responses.OutputText(text="", annotations=[])
        yield line("response.output_item.added", output_index=0, item=item)
        yield line("response.content_part.added", **at, part=empty)
        yield line("response.output_text.delta", **at, delta=part.text, logprobs=[])
        for index, annotation in enumerate(part.annotations):
            added = {"annotation_index": index, "annotation": annotation.model_dump()}
            yield line("response.output_text.annotation.added", **at, **added)
        yield line("response.output_text.done", **at, text=part.text, logprobs=[])
        yield line("response.content_part.done", **at, part=part)
        yield line("response.output_item.done", output_index=0, item=message)
        yield line(f"response.{response.status}", response=response)

    def _empty(self, status: str, *, error: responses.ResponseError | None = None) -> responses.Response:
        return responses.Response.model_validate({**self._about(), "status": status, "output": [], "error": error})

    def _of(self, made: openai.Completion) -> responses.Response:
        (choice,) = made.choices
        cited = [each.url_citation.model_dump() for each in choice.message.annotations]
        text = responses.OutputText(
            text=choice.message.content, annotations=[responses.TextAnnotation.model_validate(each) for each in cited]
        )
        is_cut = choice.finish_reason == "length"
        return responses.Response(
            **{**self._about(), "metadata": made.metadata},
            status="incomplete" if is_cut else "completed",
            incomplete_details=responses.Incomplete() if is_cut else None,
            output=[responses.OutputMessage(id=f"msg-{self.completion.thread}", content=[text])],
            usage=responses.ResponseUsage(
                input_tokens=made.usage.prompt_tokens,
                input_tokens_details=made.usage.prompt_tokens_details,
                output_tokens=made.usage.completion_tokens,
                total_tokens=made.usage.total_tokens,
            ),
        )

    def _about(self) -> dict[str, Any]:
        made = self.completion
        about = {"thread": made.thread, "question": made.rewriting.question}
        created = float(made.created)
        return {"id": f"resp-{made.thread}", "created_at": created, "model": made.method, "metadata": about}
