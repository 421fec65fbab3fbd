"""Model calls as LangChain callbacks: a tracer shows each call as a run of a chat model."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables.config import ensure_config
from langgraph.constants import TAG_NOSTREAM

from sleuth.agents.model import Reply
from sleuth.tools.tracing.callbacks import trace_headers


@dataclass(kw_only=True)
class TracedCall:
    """A call with the headers that continue its trace in the model server, and its reply, once there is one."""

    headers: Mapping[str, str]
    message: AIMessage = field(default_factory=lambda: AIMessage(""))


@asynccontextmanager
async def trace_call(body: Mapping[str, Any], *, url: str) -> AsyncIterator[TracedCall]:
    """Report the call that is made in the block to the callbacks of the current run, if there are any.

    Args:
        body: the request, with its model and messages.
        url: the address of the model server.
    """
    callbacks = ensure_config().get("callbacks")
    if not isinstance(callbacks, AsyncCallbackManager) or not callbacks.handlers:
        yield TracedCall(headers=trace_headers(None))
        return
    manager = callbacks.copy()
    manager.add_tags([TAG_NOSTREAM], inherit=False)  # a role's reply is not a chat message
    parameters = {name: value for name, value in body.items() if name != "messages"} | {"base_url": url}
    (run,) = await manager.on_chat_model_start(
        {"name": "OpenAI-compatible server"},
        [convert_to_messages(body["messages"])],
        invocation_params=parameters,
    )
    call = TracedCall(headers=trace_headers(manager, run.run_id))
    try:
        yield call
    except BaseException as error:
        await run.on_llm_error(error)
        raise
    await run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=call.message)]]))


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
