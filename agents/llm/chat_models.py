"""LangChain chat models as a `Model`, for applications that bring their own."""

import asyncio
import json
import time
from collections.abc import Mapping
from typing import Any

from langchain_core.exceptions import ModelRefusalError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM

from sleuth.agents.llm.client import ModelClient, ServedModel, check_roles
from sleuth.agents.llm.completions import Completion
from sleuth.agents.llm.errors import as_chat_model_error
from sleuth.agents.llm.server_features import CONTEXT_WINDOW, ContextWindow
from sleuth.agents.model import Listener, Reply, Request

LENGTH_FIELDS = ("max_tokens", "num_predict", "max_output_tokens", "max_tokens_to_sample")
"""Fields in which chat models have the largest number of tokens of a reply."""

_OPTIONS = ("temperature", "seed", "logprobs", "top_logprobs")

_QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM]}  # a role's reply is not a chat message


class ChatModels(ModelClient):
    """A `Model` of LangChain chat models, by role.

    Temperature, seed, length and log-probabilities are set in a copy of the model, where its class has such fields.
    Replies follow schemas by `with_structured_output` where the class has it. What a class lacks is replaced as for a
    server that lacks it (`sleuth.agents.llm.server_features`), with a warning. Retries are those of the model.

    Usage:

        model = ChatModels({"default": ChatOllama(model="qwen3:8b")})
        reply = await model.call(request)
        print(reply["text"])
    """

    def __init__(self, models: Mapping[str, BaseChatModel], *, concurrency: int = 8, seconds: float = 120.0) -> None:
        """Set the models.

        Args:
            models: the model of each role, and of all others under "default".
            concurrency: the most calls at a time.
            seconds: the most seconds of a call.

        Raises:
            UnknownName: a role does not exist.
        """
        check_roles(models, "Roles are")
        served = {role: _as_served(model) for role, model in models.items()}
        super().__init__(served, concurrency=concurrency, seconds=seconds)
        self._models = dict(models)

    async def complete(self, request: Request, body: dict[str, Any]) -> Reply:
        """Call a role's model; what its class has no field for is left out."""
        begun = time.monotonic()
        model = self._models.get(request.role) or self._models["default"]
        options = {name: body[name] for name in _OPTIONS if name in body}
        options |= dict.fromkeys(LENGTH_FIELDS, body["max_tokens"])
        if request.listener:
            options["stream_usage"] = True  # where it is off by default, streamed tokens would not be counted
        fields = {name: value for name, value in options.items() if name in type(model).model_fields}
        model, name = model.model_copy(update=fields), body["model"]
        runnable: Runnable[Any, Any] = model
        try:
            if "response_format" in body:
                guide = body["response_format"]["json_schema"]
                schema = {"title": guide["name"], "description": "The reply.", **guide["schema"]}
                runnable = model.with_structured_output(schema, include_raw=True)
            if "stop" in body:
                runnable = runnable.bind(stop=body["stop"])
            async with asyncio.timeout(self._seconds):
                message = await _reply_of(runnable, body["messages"], request.listener)
                _raise_refusal(message)
        except Exception as error:
            raise as_chat_model_error(error, name, seconds=self._seconds) from error
        return _completion(message).reply(model=name, seconds=time.monotonic() - begun)


def _as_served(model: BaseChatModel) -> ServedModel:
    """Return the name of a model, or its class, with its features and its context window."""
    name = getattr(model, "model_name", None) or getattr(model, "model", None)
    kind, profile = type(model), model.profile or {}
    features = {
        "seed": True,
        "temperature": profile.get("temperature", True),
        "logprobs": "top_logprobs" in kind.model_fields,
        "schema": kind.bind_tools is not BaseChatModel.bind_tools
        or kind.with_structured_output is not BaseChatModel.with_structured_output,
    }
    return ServedModel(
        name=name if isinstance(name, str) and name else kind.__name__,
        can=frozenset(feature for feature, has in features.items() if has),
        window=ContextWindow(tokens=profile.get("max_input_tokens") or CONTEXT_WINDOW),
    )


async def _reply_of(runnable: Runnable[Any, Any], messages: list[Any], listener: Listener | None) -> AIMessage:
    """Return the message of a chat model, or the raw one of a structured output, whose tokens are streamed too."""
    prompt = convert_to_messages(messages)
    if listener is None:
        output = await runnable.ainvoke(prompt, _QUIET)
        message: AIMessage = output["raw"] if isinstance(output, dict) else output
        return message
    run, has_tokens, written = None, False, None
    async for event in runnable.astream_events(prompt, _QUIET, version="v2", include_types=["chat_model"]):
        run = run or event["run_id"]  # a chat model may call another one
        if (
            event["run_id"] == run
            and event["event"] == "on_chat_model_stream"
            and (text := _added(event["data"]["chunk"]))
        ):
            has_tokens = True
            listener.delta(text)
        elif event["run_id"] == run and event["event"] == "on_chat_model_end":
            written = event["data"]["output"]
    if not isinstance(written, AIMessage):
        raise ValueError("its stream is empty")
    if not has_tokens:
        listener.delta(_text(written))
    return written


def _raise_refusal(message: AIMessage) -> None:
    """Raise ModelRefusalError if the model has declined to reply, which is a message as any other."""
    for block in message.content_blocks:
        if block["type"] == "refusal":
            raise ModelRefusalError.from_refusal(block, raw_message=message)


def _added(chunk: AIMessageChunk) -> str:
    """Return the text that a chunk adds; of a tool call, the piece of its arguments."""
    return str(chunk.text) or "".join(part["args"] or "" for part in chunk.tool_call_chunks)


def _text(message: AIMessage) -> str:
    """Return the text; of a tool call, which is how some models write a structured output, its arguments."""
    return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False) if message.tool_calls else str(message.text)


def _completion(message: AIMessage) -> Completion:
    """Return a message in the form of a server's completion."""
    about, usage, completion = message.response_metadata, message.usage_metadata, Completion()
    ended = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    completion.finish_reason = "length" if ended in ("length", "max_tokens", "MAX_TOKENS") else "stop"
    completion.content = _text(message)
    completion.thoughts = message.additional_kwargs.get("reasoning_content") or ""
    completion.model = about.get("model_name")
    completion.tokens = (about.get("logprobs") or {}).get("content") or []
    completion.usage = usage and {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage.get("input_token_details", {}).get("cache_read", 0)},
    }
    return completion
