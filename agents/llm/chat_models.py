"""LangChain chat models as a `Model`, for applications that bring their own."""

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, convert_to_messages
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.constants import TAG_NOSTREAM

from sleuth import prompts
from sleuth.agents.llm.call_slots import CallSlots
from sleuth.agents.llm.client import NO_LOGPROBS, SCHEMA_TOKENS, constrain, estimate_tokens
from sleuth.agents.llm.completions import Completion
from sleuth.agents.llm.context_windows import CONTEXT_WINDOW
from sleuth.agents.llm.errors import shorten
from sleuth.agents.model import Listener, Message, Reply, Request
from sleuth.agents.role import NAMES
from sleuth.tools.errors import ModelTimeout, ModelUnavailable, UnknownName
from sleuth.tools.tracing.callbacks import trace_headers

DEFAULT = "default"

LENGTH_FIELDS = ("max_tokens", "num_predict", "max_output_tokens", "max_tokens_to_sample")
"""Fields in which chat models have the largest number of tokens of a reply."""

_QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM]}  # a role's reply is not a chat message


class ChatModels:
    """A `Model` of LangChain chat models, by role.

    Temperature, seed, length and log-probabilities are set in a copy of the model, where its class has such fields.
    Replies follow schemas by `with_structured_output` where the class has it. What a class lacks is replaced as for a
    server that lacks it (`sleuth.agents.llm.capabilities`), with a warning. Retries are those of the model.

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
        for role in models:
            if role not in (known := [DEFAULT, *NAMES]):
                raise UnknownName("role", role, known, f"Roles are: {', '.join(known)}.")
        self._models = dict(models)
        self._slots = CallSlots(concurrency, seconds=seconds)
        self._seconds = seconds

    @property
    def context_window(self) -> int:
        """The smallest context window that the models' profiles name (8,192 without one), less room for a schema."""
        windows = [(model.profile or {}).get("max_input_tokens") or CONTEXT_WINDOW for model in self._models.values()]
        return min(windows) - SCHEMA_TOKENS

    def name_of(self, role: str) -> str:
        """Return the name of a role's model, or its class."""
        model = self._of(role)
        name = getattr(model, "model_name", None) or getattr(model, "model", None)
        return name if isinstance(name, str) and name else type(model).__name__

    async def call(self, request: Request) -> Reply:
        """Answer one request."""
        await prompts.read()
        model, name = _with_sampling(_traced(self._of(request.role)), request), self.name_of(request.role)
        runnable, suffix, warnings = _constrained(model, request)
        if request.sampling.stop:
            runnable = runnable.bind(stop=list(request.sampling.stop))
        sent = [*request.messages[:-1], {**request.messages[-1], "content": request.messages[-1]["content"] + suffix}]
        message, seconds = await self._slots.run(partial(self._invoke, name, runnable, sent, request.listener))
        if request.sampling.top_logprobs and not message.response_metadata.get("logprobs"):
            warnings.append(NO_LOGPROBS)
        completion = Completion()
        completion.add(_completion(message))
        reply = completion.reply(model=name, seconds=seconds)
        return {**reply, "warnings": [*warnings, *reply["warnings"]]}

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return a careful estimate: chat models download a tokenizer to count."""
        return estimate_tokens(messages)

    def _of(self, role: str) -> BaseChatModel:
        return self._models.get(role) or self._models[DEFAULT]

    async def _invoke(
        self, name: str, runnable: Runnable[Any, Any], messages: list[Any], listener: Listener | None
    ) -> tuple[AIMessage, float]:
        """Return the model's message, and the seconds that it took."""
        begun = time.monotonic()
        try:
            async with asyncio.timeout(self._seconds):
                return await _reply_of(runnable, messages, listener), time.monotonic() - begun
        except TimeoutError as error:
            raise ModelTimeout(f"{name} gave no reply within {self._seconds:g} s: see SLEUTH_TIMEOUT.") from error
        except Exception as error:
            raise ModelUnavailable(f"{name} failed: {type(error).__name__}: {shorten(str(error))}") from error


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


def _added(chunk: AIMessageChunk) -> str:
    """Return the text that a chunk adds; of a tool call, the piece of its arguments."""
    return str(chunk.text) or "".join(part["args"] or "" for part in chunk.tool_call_chunks)


def _traced(model: BaseChatModel) -> BaseChatModel:
    """Return a copy that sends the headers of the trace, if its class is one of an SDK with additional headers."""
    callbacks = ensure_config().get("callbacks")
    manager = callbacks if isinstance(callbacks, BaseCallbackManager) else None
    headers = trace_headers(manager, manager.parent_run_id if manager else None)
    if not headers or not {"default_headers", "model_kwargs"} <= type(model).model_fields.keys():
        return model
    options: dict[str, Any] = getattr(model, "model_kwargs", {})
    extra = {**options.get("extra_headers", {}), **headers}
    return model.model_copy(update={"model_kwargs": {**options, "extra_headers": extra}})


def _with_sampling(model: BaseChatModel, request: Request) -> BaseChatModel:
    """Return a copy with the parameters of a request, as far as its class has fields for them."""
    sampling = request.sampling
    wanted: dict[str, Any] = dict.fromkeys(LENGTH_FIELDS, sampling.max_tokens) | {"seed": sampling.seed}
    if request.listener is not None:
        wanted["stream_usage"] = True  # where it is off by default, streamed tokens would not be counted
    if (model.profile or {}).get("temperature", True):
        wanted["temperature"] = sampling.temperature
    if sampling.top_logprobs:
        wanted |= {"logprobs": True, "top_logprobs": sampling.top_logprobs}
    return model.model_copy(update={name: value for name, value in wanted.items() if name in type(model).model_fields})


def _constrained(model: BaseChatModel, request: Request) -> tuple[Runnable[Any, Any], str, list[str]]:
    """Return the model with its constraints, the text of those in the last message, and warnings about the latter."""
    if request.schema is not None:
        about = {"title": request.prompt.replace("/", "_"), "description": "The reply."}
        with suppress(NotImplementedError):
            return model.with_structured_output(about | request.schema, include_raw=True), "", []
    _, suffix, warnings = constrain(request, frozenset())
    return model, suffix, warnings


def _text(message: AIMessage) -> str:
    """Return the text; of a tool call, which is how some models write a structured output, its arguments."""
    return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False) if message.tool_calls else str(message.text)


def _completion(message: AIMessage) -> dict[str, Any]:
    """Return a message in the form of a server's completion."""
    about, usage = message.response_metadata, message.usage_metadata
    ended = about.get("finish_reason") or about.get("stop_reason") or about.get("done_reason")
    finish = "length" if ended in ("length", "max_tokens", "MAX_TOKENS") else "stop"
    reply = {"content": _text(message), "reasoning": message.additional_kwargs.get("reasoning_content")}
    choice = {"message": reply, "finish_reason": finish, "logprobs": about.get("logprobs")}
    tokens = usage and {
        "prompt_tokens": usage["input_tokens"],
        "completion_tokens": usage["output_tokens"],
        "prompt_tokens_details": {"cached_tokens": usage.get("input_token_details", {}).get("cache_read", 0)},
    }
    return {"model": about.get("model_name"), "choices": [choice], "usage": tokens}
