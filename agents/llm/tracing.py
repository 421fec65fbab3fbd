"""Model calls as LangChain callbacks: a tracer shows each call as a run of a chat model."""

from collections.abc import Mapping
from typing import Any, Self
from uuid import UUID

from langchain_core.callbacks import (
    AsyncCallbackManager,
    AsyncCallbackManagerForLLMRun,
    BaseCallbackHandler,
    BaseCallbackManager,
)
from langchain_core.callbacks.base import Callbacks
from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables.config import ensure_config
from langgraph.constants import TAG_NOSTREAM

from sleuth.agents.model import Reply


class TracedCall:
    """A call that is reported to the callbacks of the current run, if there are any, while its block runs.

    Attributes:
        headers: those that continue the trace in the model server.
        reply: the reply, set by the block.
    """

    reply: Reply

    def __init__(self, body: Mapping[str, Any], *, url: str) -> None:
        """Set the request, with its model and messages, and the address of the model server."""
        self.headers: Mapping[str, str] = {}
        self._body = body
        self._url = url
        self._run: AsyncCallbackManagerForLLMRun | None = None

    async def __aenter__(self) -> Self:
        """Report the request."""
        callbacks = ensure_config().get("callbacks")
        if not isinstance(callbacks, AsyncCallbackManager) or not callbacks.handlers:
            self.headers = trace_headers(None)
            return self
        manager = callbacks.copy()
        manager.add_tags([TAG_NOSTREAM], inherit=False)  # a role's reply is not a chat message
        parameters = {name: value for name, value in self._body.items() if name != "messages"} | {"base_url": self._url}
        (self._run,) = await manager.on_chat_model_start(
            {"name": "OpenAI-compatible server"},
            [convert_to_messages(self._body["messages"])],
            invocation_params=parameters,
        )
        self.headers = trace_headers(manager, self._run.run_id)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Report the reply or the error."""
        if self._run and error:
            await self._run.on_llm_error(error)
        elif self._run:
            generation = ChatGeneration(message=as_message(self.reply))
            await self._run.on_llm_end(LLMResult(generations=[[generation]]))


def handlers_of(callbacks: Callbacks) -> list[BaseCallbackHandler]:
    """Return the handlers of callbacks."""
    if isinstance(callbacks, BaseCallbackManager):
        return [*callbacks.handlers, *callbacks.inheritable_handlers]
    return list(callbacks or [])


def trace_headers(callbacks: BaseCallbackManager | None, run: UUID | None = None) -> dict[str, str]:
    """Return the headers that continue the trace in another server (W3C Trace Context); none outside of a trace.

    Args:
        callbacks: those of the run.
        run: the run that sends the request; its span is the parent of the server's. Without a span of its own, the
            parent is the current span of the application or, in `sleuth serve`, that of the request.
    """
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    tracers = [handler for handler in handlers_of(callbacks) if hasattr(handler, "context_of")]
    contexts = [tracer.context_of(run) for tracer in tracers]
    headers: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(headers, contexts[0] if contexts else None)
    return headers


def as_message(reply: Reply) -> AIMessage:
    """Return a reply with its usage as a message of LangChain."""
    about = {"model_name": reply["model"], "finish_reason": reply["finish"]}
    return AIMessage(reply["text"], usage_metadata=as_usage(**reply["usage"]), response_metadata=about)


def as_usage(*, prompt_tokens: int, cached_tokens: int, completion_tokens: int, **_: object) -> UsageMetadata:
    """Return the tokens of a call, or of a run's cost, in the form of LangChain's messages."""
    return UsageMetadata(
        input_tokens=prompt_tokens,
        output_tokens=completion_tokens,
        total_tokens=prompt_tokens + completion_tokens,
        input_token_details=InputTokenDetails(cache_read=cached_tokens),
    )
