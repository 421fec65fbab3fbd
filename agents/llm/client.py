"""The one way to a model server: the OpenAI SDK with an OpenAI-compatible URL, bounds, typed faults and fall-backs."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import openai

from sleuth import prompts
from sleuth.agents.llm import errors as faults
from sleuth.agents.llm.capabilities import Capabilities, capabilities, json_schema
from sleuth.agents.llm.completions import STREAMED, reply_of
from sleuth.agents.llm.quote_grammar import narrowed
from sleuth.agents.llm.server_info import RETRIES, Endpoint, Listed
from sleuth.agents.llm.tracing import traced
from sleuth.agents.model import Listener, Message, Reply, Request
from sleuth.agents.role import NAMES
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.settings import Settings

__all__ = ["RETRIES", "Gateway"]

CALL_HEADER = "X-Sleuth-Call"
"""Names the logical call: the same however often it is sent."""

THINKING_TOKENS = 2048
"""What a reply may have on top where the model thinks before it answers."""

SCHEMA_TOKENS = 512
"""Kept free in every prompt where schemas have to be written into it."""


class Gateway:
    """A `Model` that asks a server; made by `Gateway.open`."""

    def __init__(self, endpoint: Endpoint, served: dict[str, "_Served"], *, concurrency: int) -> None:
        """`served` holds what answers each role that has a model of its own, and "default"."""
        self._endpoint = endpoint
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
        endpoint = await asyncio.to_thread(Endpoint, settings)
        await prompts.read("shared/schema", "shared/choices")
        async with endpoint:
            listed = {entry.name: entry for entry in await endpoint.models()}
            chosen = _choose(settings, listed)
            version = await endpoint.version()
            served = {
                name: _Served(
                    listed=listed[name],
                    can=await capabilities(endpoint, name, version, settings.home / "capabilities.json"),
                )
                for name in sorted(set(chosen.values()))
            }
            by_role = {role: served[name] for role, name in chosen.items()}
            yield cls(endpoint, by_role, concurrency=settings.concurrency)

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
        body, warnings = await asyncio.to_thread(_body, request, served)
        if listener is not None:
            body |= STREAMED

        async def call() -> Reply:
            async with self._slots:
                started = time.monotonic()
                completion = await self._complete(served, body, request.call_id, listener)
                seconds = time.monotonic() - started
            return reply_of(completion, model=served.listed.name, seconds=seconds, warnings=warnings)

        return await traced(body, call)

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Tokens with the chat template; two bytes per token where the server does not count."""
        served = self._of(role)
        plain = [{"role": message["role"], "content": message["content"]} for message in messages]
        counted = await self._endpoint.count_tokens(served.listed.name, plain) if served.can.tokenize else None
        return counted if counted is not None else _estimate(messages)

    def _of(self, role: str) -> "_Served":
        return self._served.get(role) or self._served["default"]

    async def _complete(
        self, served: "_Served", body: dict[str, Any], call_id: str, listener: Listener | None
    ) -> dict[str, Any]:
        """One completion within the time-out, which spans all retries; raises ModelError."""
        url, seconds = self._endpoint.url, self._endpoint.timeout
        try:
            async with asyncio.timeout(seconds):
                return await self._endpoint.complete(body, headers={CALL_HEADER: call_id}, listener=listener)
        except TimeoutError as error:
            raise faults.too_slow(url, seconds) from error
        except openai.NotFoundError as error:
            known = [entry.name for entry in await self._endpoint.models()]
            raise faults.unknown_model(served.listed.name, known) from error
        except faults.FAILURES as error:
            raise faults.from_client(error, url=url, seconds=seconds) from error


@dataclass(frozen=True, kw_only=True, slots=True)
class _Served:
    """A model in use: what it is and what it can do."""

    listed: Listed
    can: Capabilities

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


def _as_sent(request: Request, suffix: str) -> list[dict[str, Any]]:
    """The messages, the last one with a suffix, the first user's with the token in front of its text."""
    sent: list[dict[str, Any]] = [{"content": each["content"], "role": each["role"]} for each in request.messages]
    sent[-1]["content"] += suffix
    if request.soft_token is not None:
        first = next(message for message in sent if message["role"] == "user")
        text = {"type": "text", "text": first["content"]}
        first["content"] = [{"type": "prompt_embeds", "data": request.soft_token}, text]
    return sent


def _body(request: Request, served: "_Served") -> tuple[dict[str, Any], list[str]]:
    """The body of a request as a server takes it, and a warning for each fall-back that is used."""
    sampling, can = request.sampling, served.can
    alternatives = {"top_logprobs": sampling.top_logprobs} if sampling.top_logprobs and can.logprobs else {}
    constraints, suffix, warnings = _constraints(request, can)
    if sampling.top_logprobs and not can.logprobs:
        warnings.append("the model server gives no log-probabilities: probabilities are unavailable")
    return {
        "model": served.listed.name,
        "stream": False,
        "messages": _as_sent(request, suffix),
        **({"logprobs": True} if alternatives else {}),
        "seed": sampling.seed,
        "temperature": sampling.temperature,
        **alternatives,
        "max_tokens": sampling.max_tokens + (THINKING_TOKENS if can.thinks else 0),
        **constraints,
    }, warnings


def _constraints(request: Request, can: Capabilities) -> tuple[dict[str, Any], str, list[str]]:
    """What guides a reply, what has to be written into the last message instead, and warnings that say so."""
    body: dict[str, Any] = {}
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
    return body, suffix, warnings


def _written(name: str, **values: str) -> str:
    _, text = prompts.load(f"shared/{name}").render(**values)
    return f"\n\n{text}"


def _estimate(messages: tuple[Message, ...]) -> int:
    """Careful: English has about four bytes per token, Chinese about two."""
    return sum(len(message["content"].encode("utf-8", "replace")) // 2 + 16 for message in messages) + 16
