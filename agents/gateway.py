"""The one way to a model server: ChatOpenAI with an OpenAI-compatible URL, bounds, typed faults and fall-backs."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import openai
from langchain_core.messages import AIMessage
from langchain_openai import ChatOpenAI
from langgraph.constants import TAG_NOSTREAM
from pydantic import SecretStr

from sleuth import prompts
from sleuth.agents import faults
from sleuth.agents.capabilities import Capabilities, capabilities, json_schema
from sleuth.agents.copying import narrowed
from sleuth.agents.endpoint import Endpoint, Listed
from sleuth.agents.model import Message, Reply, Request, TokenLogprob, Usage
from sleuth.agents.replies import CALL_HEADER, Replies
from sleuth.agents.role import NAMES
from sleuth.agents.streams import STREAMED
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.settings import Settings

RETRIES = 3
"""For refused connections, broken replies, 408, 409, 429 and 5xx; the client waits as long as Retry-After says."""

THINKING_TOKENS = 2048
"""What a reply may have on top where the model thinks before it answers."""

SCHEMA_TOKENS = 512
"""Kept free in every prompt where schemas have to be written into it."""


class Gateway:
    """A `Model` that asks a server; made by `Gateway.open`."""

    def __init__(self, endpoint: Endpoint, replies: Replies, served: dict[str, "_Served"], *, concurrency: int) -> None:
        """`served` holds what answers each role that has a model of its own, and "default"."""
        self._endpoint = endpoint
        self._replies = replies
        self._served = served
        self._slots = asyncio.Semaphore(concurrency)

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["Gateway"]:
        """A gateway to `settings.model_url`, as long as the block lasts.

        Raises:
            UsageError: no model server there, or several models and none chosen.
            UnknownName: a chosen model is not served.
            ModelError: the server cannot be reached or used.
        """
        # Made in threads: HTTP clients read certificates and import more of themselves.
        endpoint, http = await asyncio.gather(asyncio.to_thread(Endpoint, settings), asyncio.to_thread(Replies))
        await prompts.read("shared/schema", "shared/choices")
        async with endpoint, http:
            listed = {entry.name: entry for entry in await endpoint.models()}
            chosen = _choose(settings, listed)
            version = await endpoint.version()
            served = {
                name: _Served(
                    listed=listed[name],
                    can=await capabilities(endpoint, name, version, settings.home / "capabilities.json"),
                    chat=await asyncio.to_thread(_chat, settings, name, http),
                )
                for name in sorted(set(chosen.values()))
            }
            by_role = {role: served[name] for role, name in chosen.items()}
            yield cls(endpoint, http, by_role, concurrency=settings.concurrency)

    @property
    def context_window(self) -> int:
        """The smallest of the models in use, less what their fall-backs need."""
        return min(served.room for served in self._served.values())

    def name_of(self, role: str) -> str:
        """The model that answers for a role."""
        return self._of(role).listed.name

    async def call(self, request: Request) -> Reply:
        """Answers one request; at most `settings.concurrency` at a time are with the server."""
        served = self._of(request.role)
        listener = request.listener if served.can.stream else None
        options, suffix, warnings = _constraints(request, served.can)
        if listener is not None:
            options["extra_body"] |= STREAMED
        messages = _as_sent(request, suffix)
        async with self._slots:
            started = time.monotonic()
            with self._replies.told_to(listener, request.call_id):
                answer = await self._send(served, messages, options)
            seconds = time.monotonic() - started
        return _reply(answer, served.listed.name, seconds, warnings)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Tokens with the chat template; two bytes per token where the server does not count."""
        served = self._of(role)
        plain = [{"role": message["role"], "content": message["content"]} for message in messages]
        counted = await self._endpoint.count_tokens(served.listed.name, plain) if served.can.tokenize else None
        return counted if counted is not None else _estimate(messages)

    def _of(self, role: str) -> "_Served":
        return self._served.get(role) or self._served["default"]

    async def _send(self, served: "_Served", messages: list[dict[str, Any]], options: dict[str, Any]) -> AIMessage:
        """One reply within the time-out, which spans the client's retries; raises ModelError."""
        url, seconds = self._endpoint.url, self._endpoint.timeout
        try:
            async with asyncio.timeout(seconds):
                return await served.chat.ainvoke(messages, **options)
        except TimeoutError as error:
            raise faults.too_slow(url, seconds) from error
        except openai.NotFoundError as error:
            known = [entry.name for entry in await self._endpoint.models()]
            raise faults.unknown_model(served.listed.name, known) from error
        except openai.APIError as error:
            raise faults.from_client(error, url=url, seconds=seconds) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class _Served:
    """A model in use: what it is, what it can do, and the client that asks it."""

    listed: Listed
    can: Capabilities
    chat: ChatOpenAI

    @property
    def room(self) -> int:
        """Tokens for prompts and replies as the roles know them."""
        thinking = THINKING_TOKENS if self.can.thinks else 0
        return self.listed.context_window - thinking - (0 if self.can.schema else SCHEMA_TOKENS)


def _choose(settings: Settings, listed: dict[str, Listed]) -> dict[str, str]:
    """The model of each role; "default" is for all others."""
    name = settings.models.get("default") or settings.model
    if name is None:
        if len(listed) != 1:
            names = ", ".join(sorted(listed)) or "none"
            raise UsageError(f"The model server lists several models or none ({names}): choose one with SLEUTH_MODEL.")
        name = next(iter(listed))
    chosen = settings.models | {"default": name}
    for role in chosen:
        if role not in (known := ["default", *NAMES]):
            raise UnknownName("role", role, known, f"SLEUTH_MODELS may name: {', '.join(known)}.")
    for model in chosen.values():
        if model not in listed:
            raise faults.unknown_model(model, sorted(listed))
    return chosen


def _chat(settings: Settings, model: str, http: Replies) -> ChatOpenAI:
    return ChatOpenAI(
        model=model,
        base_url=settings.model_url.rstrip("/"),
        api_key=settings.model_key or SecretStr("none"),
        timeout=settings.timeout,
        max_retries=RETRIES,
        http_async_client=http,  # its own: langchain's is shared between event loops
        tags=[TAG_NOSTREAM],  # what a role says is no message of a chat that streams its messages
        disable_streaming=True,  # streams are put together below it: see Replies
    )


def _as_sent(request: Request, suffix: str) -> list[dict[str, Any]]:
    """The messages, the last one with a suffix, the first user's with the token in front of its text."""
    sent: list[dict[str, Any]] = [dict(message) for message in request.messages]
    sent[-1]["content"] += suffix
    if request.soft_token is not None:
        first = next(message for message in sent if message["role"] == "user")
        text = {"type": "text", "text": first["content"]}
        first["content"] = [{"type": "prompt_embeds", "data": request.soft_token}, text]
    return sent


def _constraints(request: Request, can: Capabilities) -> tuple[dict[str, Any], str, list[str]]:
    """What goes beside the messages, what has to be written into the last one instead, and warnings that say so."""
    sampling = request.sampling
    # Not as ChatOpenAI's own arguments: its response_format raises on a cut-off reply instead of returning it, and its
    # max_tokens is sent under a name that only some servers know.
    body: dict[str, Any] = {"max_tokens": sampling.max_tokens + (THINKING_TOKENS if can.thinks else 0)}
    suffix, warnings = "", []
    if request.schema is not None and can.schema:
        schema = narrowed(request.schema, request.messages) if can.copies else request.schema
        body["response_format"] = json_schema(request.prompt.replace("/", "_"), schema)
    elif request.schema is not None:
        suffix = _written("schema", schema=json.dumps(request.schema, ensure_ascii=False))
        warnings.append("the model server does not guide replies by JSON schemas: they were written into the prompts")
    if request.choices is not None and can.choice:
        body["structured_outputs"] = {"choice": list(request.choices)}
    elif request.choices is not None:
        suffix = _written("choices", choices=", ".join(request.choices))
        warnings.append("the model server does not restrict replies to choices: they were written into the prompts")
    options: dict[str, Any] = {"temperature": sampling.temperature, "seed": sampling.seed, "extra_body": body}
    if sampling.top_logprobs and can.logprobs:
        options |= {"logprobs": True, "top_logprobs": sampling.top_logprobs}
    elif sampling.top_logprobs:
        warnings.append("the model server gives no log-probabilities: probabilities are unavailable")
    return options | {"extra_headers": {CALL_HEADER: request.call_id}}, suffix, warnings


def _written(name: str, **values: str) -> str:
    _, text = prompts.load(f"shared/{name}").render(**values)
    return f"\n\n{text}"


def _estimate(messages: tuple[Message, ...]) -> int:
    """Careful: English has about four bytes per token, Chinese about two."""
    return sum(len(message["content"].encode("utf-8", "replace")) // 2 + 16 for message in messages) + 16


def _reply(answer: AIMessage, model: str, seconds: float, warnings: list[str]) -> Reply:
    about: dict[str, Any] = answer.response_metadata
    usage = answer.usage_metadata
    details = usage.get("input_token_details", {}) if usage else {}
    return Reply(
        text=answer.text,
        finish="length" if about.get("finish_reason") == "length" else "stop",
        model=str(about.get("model_name") or model),
        usage=Usage(
            prompt_tokens=usage["input_tokens"] if usage else 0,
            cached_tokens=details.get("cache_read") or 0,
            completion_tokens=usage["output_tokens"] if usage else 0,
        ),
        seconds=round(seconds, 4),
        logprobs=_logprobs(about.get("logprobs")),
        warnings=warnings,
    )


def _logprobs(found: dict[str, Any] | None) -> list[TokenLogprob] | None:
    if not found or not found.get("content"):
        return None
    return [
        TokenLogprob(
            token=entry["token"],
            logprob=entry["logprob"],
            # likeliest first: of two pieces that read the same, the likelier one counts
            top={other["token"]: other["logprob"] for other in reversed(entry.get("top_logprobs") or [])},
        )
        for entry in found["content"]
    ]
