"""Model calls as LangChain callbacks: a tracer shows each call as a run of a chat model."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from langchain_core.callbacks import AsyncCallbackManager
from langchain_core.messages import AIMessage, convert_to_messages
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.runnables.config import ensure_config
from langgraph.constants import TAG_NOSTREAM

from sleuth.agents.model import Reply
from sleuth.tools.tracing.callbacks import trace_headers

T = TypeVar("T")


async def trace_call(
    body: Mapping[str, Any],
    send: Callable[[Mapping[str, str]], Awaitable[T]],
    describe: Callable[[T], AIMessage],
    *,
    url: str,
) -> T:
    """Send a request, and report it to the callbacks of the current run, if there are any.

    Args:
        body: the request, with its model and messages.
        send: sends it with headers that continue the trace in the model server.
        describe: returns what `send` returned as a message.
        url: the address of the model server.
    """
    callbacks = ensure_config().get("callbacks")
    if not isinstance(callbacks, AsyncCallbackManager) or not callbacks.handlers:
        return await send(trace_headers(None))
    manager = callbacks.copy()
    manager.add_tags([TAG_NOSTREAM], inherit=False)  # a role's reply is not a chat message
    parameters = {name: value for name, value in body.items() if name != "messages"} | {"base_url": url}
    (run,) = await manager.on_chat_model_start(
        {"name": "OpenAI-compatible server"},
        [convert_to_messages(body["messages"])],
        invocation_params=parameters,
    )
    try:
        reply = await send(trace_headers(manager, run.run_id))
    except BaseException as error:
        await run.on_llm_error(error)
        raise
    await run.on_llm_end(LLMResult(generations=[[ChatGeneration(message=describe(reply))]]))
    return reply


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
