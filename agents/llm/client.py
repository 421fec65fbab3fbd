"""Model clients: requests, fallbacks for what a model lacks, the client of an OpenAI-compatible server, call slots."""

import asyncio
import json
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from anyio import CapacityLimiter

from sleuth import prompts
from sleuth.agents.llm import errors
from sleuth.agents.llm.completions import STREAMED
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.agents.llm.server_features import (
    CUT,
    PARAMETERS,
    THINKING_TOKENS,
    Capabilities,
    ContextWindow,
    detect_capabilities,
    find_window,
    refused_features,
    schema_format,
    was_cut,
)
from sleuth.agents.llm.tracing import TracedCall
from sleuth.agents.model import EVIDENCE_CHECKER, Message, Reply, Request, Usage
from sleuth.agents.role import NAMES
from sleuth.tools.errors import ModelError, ModelTimeout, UnknownName, UsageError
from sleuth.tools.settings import Settings

CALL_HEADER = "X-Sleuth-Call"
"""The id of the logical call, the same for every retry."""

SCHEMA_TOKENS = 512
"""Tokens reserved in every prompt if schemas have to be written into it."""

NO_SCHEMA = "replies are not guided by JSON schemas: these were written into the prompts"
NO_CHOICE = "replies are not restricted to choices: these were written into the prompts"
NO_LOGPROBS = "there are no log-probabilities: probabilities are unavailable"
REFUSED = "the model server refuses a part of the request: it was asked again without {}"
ESTIMATED = "the model server sends no token counts: the tokens are estimated"
"""Warnings of replies that a fallback was used for."""

_log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class ServedModel:
    """A model in use, its features, fewer if it refuses some, and its context window."""

    name: str
    can: Capabilities
    window: ContextWindow

    @property
    def room(self) -> int:
        """Tokens for prompts and replies, without those reserved for thinking and fallbacks."""
        thinking = THINKING_TOKENS if "thinks" in self.can else 0
        return self.window.tokens - thinking - (0 if "schema" in self.can else SCHEMA_TOKENS)


class ModelClient(ABC):
    """Base of all clients: a `Model` that writes requests for what each role's model can do.

    A subclass sends them.
    """

    def __init__(self, served: Mapping[str, ServedModel], *, concurrency: int, seconds: float) -> None:
        """Set the models.

        Args:
            served: the model of each role that has one of its own, and of all others under "default".
            concurrency: the most calls at a time.
            seconds: the most seconds of a call.
        """
        self._served = served
        self._seconds = seconds
        self._slots = CallSlots(concurrency, seconds=seconds)

    @property
    def context_window(self) -> int:
        """Smallest context window of the models in use, minus the tokens reserved for thinking and fallbacks."""
        return min(served.room for served in self._served.values())

    def name_of(self, role: str) -> str:
        """Return the model of a role."""
        return self.served(role).name

    def served(self, role: str) -> ServedModel:
        """Return a role's model."""
        return self._served.get(role) or self._served["default"]

    async def call(self, request: Request) -> Reply:
        """Answer one request; at most `concurrency` requests are in flight."""
        served = self.served(request.role)
        can, lacking, refused = served.can, list[str](), None
        while True:
            body, warnings = await asyncio.to_thread(_body, request, served, can)
            if lacking:
                warnings.append(REFUSED.format(", ".join(lacking)))
            try:
                async with self._slots.take():  # after a time-out next to other calls, the block is repeated
                    reply = await self.complete(request, body)
                    served.can &= can  # a concurrent call may have removed others
                    reply["warnings"] = [*warnings, *reply["warnings"], *_problems(request, served, body, reply)]
                    return reply
            except errors.Refused as error:
                refused = refused or error
                if not (more := refused_features(can, body, str(error.__cause__))):
                    raise ModelError(str(refused)) from refused
                can, lacking = can.difference(more), [*lacking, *more]

    @abstractmethod
    async def complete(self, request: Request, body: dict[str, Any]) -> Reply:
        """Send the body of a request.

        Raises:
            ModelError: there is no usable reply.
        """

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return a careful estimate: English has about four bytes per token, Chinese about two."""
        return sum(len(message["content"].encode("utf-8", "replace")) // 2 + 16 for message in messages) + 16


class LLMClient(ModelClient):
    """A `Model` that calls a server; created by `LLMClient.open`.

    Usage:

        async with LLMClient.open(Settings(model_url="http://127.0.0.1:8000/v1")) as client:
            reply = await client.call(request)
        print(reply["text"])
    """

    def __init__(self, endpoint: Endpoint, served: Mapping[str, ServedModel], *, concurrency: int) -> None:
        super().__init__(served, concurrency=concurrency, seconds=endpoint.timeout)
        self._endpoint = endpoint

    @classmethod
    @asynccontextmanager
    async def open(cls, settings: Settings) -> AsyncIterator["LLMClient"]:
        """Open a client of `settings.model_url` for the duration of the block.

        Raises:
            UsageError: no model is chosen, and the server lists several or has no list.
            UnknownName: a chosen model is not in the server's list.
            ModelError: the server cannot be reached or used.
        """
        async with await asyncio.to_thread(Endpoint, settings) as endpoint:
            listed = await (endpoint.find_models() if _default(settings) else endpoint.models())
            chosen = _choose(settings, listed)
            file = settings.home / "capabilities.json"
            served = {
                name: ServedModel(
                    name=name,
                    can=await detect_capabilities(endpoint, name, file),
                    window=await find_window(endpoint, name, (listed or {}).get(name, 0)),
                )
                for name in sorted(set(chosen.values()))
            }
            for model in served.values():
                if advice := model.window.advice:
                    size = f"{model.window.tokens:,} tokens in {model.window.server}"
                    _log.warning(
                        "%s has a context window of %s: long prompts lose passages. %s", model.name, size, advice
                    )
            by_role = {role: served[name] for role, name in chosen.items()}
            yield cls(endpoint, by_role, concurrency=settings.concurrency)

    async def complete(self, request: Request, body: dict[str, Any]) -> Reply:
        """Send a request with its call's id, and report the call to the tracers of the run."""
        listener, begun = request.listener if body["stream"] else None, time.monotonic()
        try:
            async with TracedCall(body, url=self._endpoint.url) as call:
                headers = {CALL_HEADER: request.call_id, **call.headers}
                completion = await self._endpoint.complete(body, headers=headers, listener=listener)
                call.reply = completion.reply(model=str(body["model"]), seconds=time.monotonic() - begun)
                return call.reply
        except ModelError as error:
            if isinstance(error.__cause__, errors.ServerError) and error.__cause__.status == 404:
                listed = await self._endpoint.find_models()
                if listed is not None and body["model"] not in listed:
                    raise errors.unknown_model(body["model"], sorted(listed)) from error
            raise

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        """Return the tokens with the chat template; a careful estimate if the server does not count them."""
        served = self.served(role)
        counted = await self._endpoint.count_tokens(served.name, messages) if "tokenize" in served.can else None
        return counted if counted is not None else await super().count_tokens(messages, role=role)


def _default(settings: Settings) -> str | None:
    return settings.models.get("default") or settings.model


def _choose(settings: Settings, listed: dict[str, int] | None) -> dict[str, str]:
    """Return the model of each role; "default" is for all others. Without a list, no name is checked."""
    name = _default(settings)
    if name is None:
        names = sorted(listed or ())
        if len(names) != 1:
            served = ", ".join(names) or "none"
            raise UsageError(f"The model server lists several models or none ({served}): choose one with SLEUTH_MODEL.")
        (name,) = names
    chosen = settings.models | {"default": name}
    check_roles(chosen, "SLEUTH_MODELS may name")
    # The evidence checker needs no server, and cannot take all roles.
    chosen = {role: model for role, model in chosen.items() if role == "default" or model != EVIDENCE_CHECKER}
    for model in chosen.values():
        if listed is not None and model not in listed:
            raise errors.unknown_model(model, sorted(listed))
    return chosen


def check_roles(roles: Iterable[str], about: str) -> None:
    """Raise UnknownName for a role that does not exist; `about` introduces those that do."""
    names = ["default", *NAMES]
    for role in roles:
        if role not in names:
            raise UnknownName("role", role, names, f"{about}: {', '.join(names)}.")


def _problems(request: Request, served: ServedModel, body: dict[str, Any], reply: Reply) -> list[str]:
    """Return warnings of missing parts of a reply, and of a prompt that the server has cut; estimate missing usage."""
    problems = [NO_LOGPROBS] if "logprobs" in body and not reply["logprobs"] else []
    counted = reply["usage"]["prompt_tokens"]
    if not counted:  # about one token for each four bytes
        texts = "".join(message["content"] for message in request.messages), reply["text"]
        prompt, written = (len(text.encode("utf-8", "replace")) // 4 + 1 for text in texts)
        reply["usage"] = Usage(prompt_tokens=prompt, cached_tokens=0, completion_tokens=written)
        problems.append(ESTIMATED)
    # A server that counts tokens exactly refuses prompts that are too long.
    elif "tokenize" not in served.can and was_cut(request.messages, counted, served.window.tokens):
        problems.append(CUT)
    return problems


def _as_sent(request: Request, suffix: str) -> list[dict[str, Any]]:
    """Return the messages, the last one with a suffix, the first user message with the soft token before its text."""
    sent: list[dict[str, Any]] = [{"content": each["content"], "role": each["role"]} for each in request.messages]
    sent[-1]["content"] += suffix
    if request.soft_token is not None:
        first = next(message for message in sent if message["role"] == "user")
        text = {"type": "text", "text": first["content"]}
        first["content"] = [{"type": "prompt_embeds", "data": request.soft_token}, text]
    return sent


def _body(request: Request, served: ServedModel, can: Capabilities) -> tuple[dict[str, Any], list[str]]:
    """Return the body of a request to a model with some features, and a warning for each fallback used."""
    sampling = request.sampling
    constraint, suffix, warnings = _constrain(request, can)
    body = {
        "model": served.name,
        "messages": _as_sent(request, suffix),
        "stream": False,
        "seed": sampling.seed,
        "temperature": sampling.temperature,
        "max_tokens": sampling.max_tokens + (THINKING_TOKENS if "thinks" in can else 0),
        **constraint,
    }
    if sampling.top_logprobs and "logprobs" in can:
        body |= {"logprobs": True, "top_logprobs": sampling.top_logprobs}
    elif sampling.top_logprobs:
        warnings.append(NO_LOGPROBS)
    if sampling.stop:
        body |= {"stop": list(sampling.stop), "include_stop_str_in_output": True}
    if request.messages[-1]["role"] == "assistant":  # the reply continues it
        body |= {"add_generation_prompt": False, "continue_final_message": True}
    if request.listener is not None and not sampling.top_logprobs:  # some servers stream no log-probabilities
        body |= STREAMED
    return {name: value for name, value in body.items() if name not in PARAMETERS - can}, warnings


def _constrain(request: Request, can: Capabilities) -> tuple[dict[str, Any], str, list[str]]:
    """Return the constraints of a reply as options of the request, or as text for the end of the prompt.

    A constraint that the server lacks is text, with a warning.
    """
    if request.schema is not None:
        if "schema" in can:
            schema = request.schema
            if "copies" in can:
                from sleuth.agents.llm.quote_grammar import constrain_quotes

                schema = constrain_quotes(schema, request.messages)
            return {"response_format": schema_format(request.prompt.replace("/", "_"), schema)}, "", []
        _, text = prompts.load("shared/schema").render(schema=json.dumps(request.schema, ensure_ascii=False))
        return {}, f"\n\n{text}", [NO_SCHEMA]
    if request.choices is not None:
        if "choice" in can:
            return {"structured_outputs": {"choice": list(request.choices)}}, "", []
        _, text = prompts.load("shared/choices").render(choices=", ".join(request.choices))
        return {}, f"\n\n{text}", [NO_CHOICE]
    return {}, "", []


class CallSlots:
    """Slots for calls, at most `most` of them at a time.

    A server that works on several calls needs longer for each of them. So a call that times out next to others is
    repeated with half as many in flight, and only one that times out alone fails. Each reply within half of the
    time-out raises the number again by one.

    Usage:

        slots = CallSlots(8, seconds=120)
        while True:
            async with slots.take():
                return await send(request)
    """

    def __init__(self, most: int, *, seconds: float) -> None:
        """`seconds` is the time-out of a call, which the call itself enforces."""
        self.most = most
        self.seconds = seconds
        self.limiter = CapacityLimiter(most)

    def take(self) -> "_Slot":
        """Return a slot for one call; after a time-out next to other calls its block ends without an error."""
        return _Slot(self)


class _Slot:
    def __init__(self, slots: CallSlots) -> None:
        self._slots = slots

    async def __aenter__(self) -> None:
        limiter = self._slots.limiter
        await limiter.acquire()
        self._begun, self._busiest = time.monotonic(), limiter.borrowed_tokens

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        slots, limiter = self._slots, self._slots.limiter
        busiest = max(self._busiest, limiter.borrowed_tokens)
        is_repeated = isinstance(error, ModelTimeout) and busiest > 1
        if is_repeated:
            limiter.total_tokens = min(limiter.total_tokens, busiest // 2)
            _log.warning(
                "The model server is too slow for SLEUTH_CONCURRENCY=%d: calls that timed out are repeated, at most "
                "%d at a time.",
                slots.most,
                limiter.total_tokens,
            )
        elif error is None and time.monotonic() - self._begun < slots.seconds / 2:
            limiter.total_tokens = min(limiter.total_tokens + 1, slots.most)
        limiter.release()
        return is_repeated
