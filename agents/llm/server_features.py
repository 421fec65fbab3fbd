"""Features of a model server and context windows of its models.

| feature          | without it                                                          |
| ---------------- | ------------------------------------------------------------------- |
| schema           | the JSON schema is written into the prompt, the reply is parsed     |
| copies           | quotes are guided like any text; more of them fail verification     |
| choice           | the choices are written into the prompt, the reply is matched       |
| logprobs         | a probability is 0.5 (auto: 0 or 1 by the word), no perplexity      |
| tokenize         | prompts are estimated at two bytes per token                        |
| thinks           | no tokens are reserved for thoughts before an answer                |
| seed, temperature, stream_options | the parameter is not sent                          |

Features are probed once per endpoint and model, and stored in a file; servers without schemas are probed each time, as
a probe may fail by chance. What a server refuses later is left out of its calls from then on.

Ollama (`GET /api/ps`, `POST /api/show`), llama.cpp (`GET /props`) and LM Studio (`GET /api/v0/models`) do not list
context windows. Ollama and LM Studio decide on one when they load a model, so it is loaded first. Ollama cuts longer
prompts silently.
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from sleuth.agents.llm.completions import Completion, token_count
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.agents.model import Message, without_thoughts
from sleuth.tools.errors import ModelError, ModelTimeout

Capabilities = frozenset[str]
"""The features of a server."""

CHOICES = ["amber", "violet"]

THINKING_TOKENS = 2048
"""Additional tokens of a reply if the model thinks before it answers."""

_READY = re.compile(r'\s*\{\s*"ready"\s*:\s*(?:true|false)\s*\}\s*')

PARAMETERS = frozenset({"seed", "temperature", "stream_options"})
"""Features that are a parameter, which every server has until it refuses it."""

_CONSTRAINTS = r"grammar|schema|regex|pattern|structured|guided|response_format|json"
_REFUSED = {
    "copies": ("response_format", _CONSTRAINTS),
    "schema": ("response_format", _CONSTRAINTS),
    "choice": ("structured_outputs", rf"{_CONSTRAINTS}|choice"),
    "logprobs": ("logprobs", "logprobs"),
    **{name: (name, rf"\b{name}\b") for name in sorted(PARAMETERS)},
}
"""Features, the parameter of each, and how servers name it when they refuse it."""


def refused_features(can: Capabilities, body: Mapping[str, Any], reason: str) -> list[str]:
    """Return what the reason of a refused request names of the features that it uses, or all if it names nothing."""
    used = [name for name, (key, _) in _REFUSED.items() if key in body and name in can]
    named = [name for name in used if re.search(_REFUSED[name][1], reason, re.IGNORECASE)]
    return named[:1] or used


async def detect_capabilities(endpoint: Endpoint, model: str, file: Path) -> Capabilities:
    """Return the stored capabilities of this endpoint and model; otherwise probe the server and store them."""
    key = f"{endpoint.url} {model}"
    cached: dict[str, list[str]] = {}
    with suppress(OSError, ValueError):
        cached = json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8"))
    if "schema" in cached.get(key, []):
        return frozenset(cached[key])
    can = await probe(endpoint, model)
    with suppress(OSError):  # where it cannot be stored, the server is probed again
        await asyncio.to_thread(file.parent.mkdir, parents=True, exist_ok=True)
        text = json.dumps(cached | {key: sorted(can)}, indent=1, sort_keys=True)
        await asyncio.to_thread(file.write_text, text, encoding="utf-8")
    return can


async def probe(endpoint: Endpoint, model: str) -> Capabilities:
    """Probe each feature with a few tokens: servers may silently ignore options.

    If the reply is cut off before its JSON ends, the model may think: then the probes have room for that.
    """
    plain, tokens, (guided, copied, chosen) = await asyncio.gather(
        endpoint.probe(model, logprobs=True, top_logprobs=20, max_tokens=4),
        endpoint.count_tokens(model, [Message(role="user", content="Good morning.")]),
        _probe_constraints(endpoint, model),
    )
    if guided.finish_reason == "length" and not _is_ready(guided):
        with suppress(ModelTimeout):
            guided, copied, chosen = await _probe_constraints(endpoint, model, max_tokens=THINKING_TOKENS)
    results = {
        "schema": _is_ready(guided),
        "copies": without_thoughts(copied.text).strip() in [f'{{"word" : "{word}"}}' for word in CHOICES],
        "choice": without_thoughts(chosen.text).strip() in CHOICES,
        "logprobs": bool(plain.tokens),
        "tokenize": tokens is not None,
        "thinks": any(
            (reply.thoughts and not reply.is_reasoned) or without_thoughts(reply.text) != reply.text
            for reply in (plain, guided, copied, chosen)
        ),
    }
    return PARAMETERS | {name for name, has in results.items() if has}


async def _probe_constraints(endpoint: Endpoint, model: str, **options: object) -> Sequence[Completion]:
    ready, word = {"type": "boolean"}, {"type": "string", "pattern": f"^(?:{'|'.join(CHOICES)})$"}
    # Only llguidance follows the second schema exactly: others ignore a long pattern, or take seconds for it.
    copies = _object(word=word) | {"x-guidance": {"key_separator": " : ", "whitespace_flexible": False}}
    return await asyncio.gather(
        endpoint.probe(model, response_format=schema_format("probe", _object(ready=ready)), **options),
        endpoint.probe(model, response_format=schema_format("copies", copies), **options),
        endpoint.probe(model, structured_outputs={"choice": CHOICES}, **options),
    )


def _object(**fields: object) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": [*fields], "additionalProperties": False}


def _is_ready(guided: Completion) -> bool:
    return _READY.fullmatch(without_thoughts(guided.text)) is not None


def schema_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `response_format` that guides a reply by a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


# Context windows

CONTEXT_WINDOW = 8192
"""Tokens, if the server does not report its context window; smaller windows leave room for few passages."""

OLLAMA_WINDOW = 4096
"""Ollama's smallest default, for releases that do not report the window of a loaded model."""

_WISHED = 16_384
"""Tokens that the remedies suggest."""

_SHORT_PROMPT = 500
"""Tokens; servers cut no prompt that is shorter."""

_CHARACTERS_PER_TOKEN = 8
"""Above the average of any tokenizer on prose in any script."""

CUT = (
    "the model server read only a part of a prompt: its context window is smaller than sleuth assumes. Enlarge it "
    "(Ollama: OLLAMA_CONTEXT_LENGTH; llama.cpp: --ctx-size; LM Studio: the model's context length)"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextWindow:
    """The context window of a model.

    Attributes:
        tokens: tokens of prompt and reply together; 0 if the model is not loaded yet.
        server: the kind of server, such as Ollama; empty if it is another one.
        is_assumed: the server does not report the window.
        remedy: how to enlarge the window.
    """

    tokens: int
    server: str = ""
    is_assumed: bool = False
    remedy: str = ""

    @property
    def advice(self) -> str:
        """The remedy if the window is small; otherwise empty."""
        return self.remedy if 0 < self.tokens < CONTEXT_WINDOW else ""


async def find_window(endpoint: Endpoint, model: str, listed: int, *, load: bool = True) -> ContextWindow:
    """Return the context window of a model, or the default if the server does not report it.

    Args:
        endpoint: the server.
        model: the model's name in its list.
        listed: its context window in the list; 0 if there is none.
        load: load the model with a request of one token if its window depends on that.
    """
    if listed:
        return ContextWindow(tokens=listed)
    with suppress(ModelError):  # a proxy that refuses unknown paths; the first call reports a broken server
        for ask in (_ollama, _llama_cpp, _lm_studio):
            window = await ask(endpoint, model)
            if window and not window.tokens and load:
                await endpoint.probe(model, max_tokens=1)
                window = await ask(endpoint, model)
            if window and window.tokens:
                return window
    return ContextWindow(tokens=CONTEXT_WINDOW, is_assumed=True)


def was_cut(messages: Sequence[Message], prompt_tokens: int, window: int) -> bool:
    """Return whether a server has read only a part of a prompt, judging by the tokens that it reports.

    Servers that cut prompts report the tokens after the cut: those of a whole window, or far too few for the text.

    Args:
        messages: the prompt that was sent.
        prompt_tokens: the tokens that the server reports; 0 if it reports none.
        window: the context window that the prompt was fitted to.
    """
    least = sum(len(" ".join(message["content"].split())) for message in messages) / _CHARACTERS_PER_TOKEN
    if not prompt_tokens or least < _SHORT_PROMPT:
        return False
    return prompt_tokens >= window or prompt_tokens < least


async def _ollama(endpoint: Endpoint, model: str) -> ContextWindow | None:
    """Return the window of the loaded model; before that, the one that its Modelfile sets."""
    running = await endpoint.about("/api/ps")
    if "models" not in running:
        return None
    details = await endpoint.about("/api/show", {"model": model})
    loaded = _entry(running["models"], model, "name", "model")
    parameter = re.search(r"^num_ctx\s+(\d+)$", str(details.get("parameters")), re.MULTILINE)
    assumed = OLLAMA_WINDOW if loaded else 0
    return ContextWindow(
        tokens=token_count(loaded.get("context_length")) or (int(parameter[1]) if parameter else assumed),
        server="Ollama",
        remedy=f"Start Ollama with OLLAMA_CONTEXT_LENGTH={_WISHED}, or set num_ctx in the model's Modelfile.",
    )


async def _llama_cpp(endpoint: Endpoint, model: str) -> ContextWindow | None:
    """Return the window of one slot. A server of several models takes the model in the query."""
    properties = await endpoint.about(f"/props?{urlencode({'model': model})}")
    settings = properties.get("default_generation_settings")
    tokens = token_count(settings.get("n_ctx")) if isinstance(settings, dict) else 0
    remedy = f"Start llama-server with --ctx-size {_WISHED}; slots set with --parallel divide it."
    return ContextWindow(tokens=tokens, server="llama.cpp", remedy=remedy) if tokens else None


async def _lm_studio(endpoint: Endpoint, model: str) -> ContextWindow | None:
    listed = _entry((await endpoint.about("/api/v0/models")).get("data"), model, "id")
    tokens = token_count(listed.get("loaded_context_length"))
    remedy = f"Load it with: lms load {model} --context-length {_WISHED}"
    return ContextWindow(tokens=tokens, server="LM Studio", remedy=remedy) if "max_context_length" in listed else None


def _entry(entries: object, name: str, *keys: str) -> dict[str, Any]:
    """Return the entry of a list that has the name under one of the keys; empty if there is none."""
    listed = entries if isinstance(entries, list) else []
    named = (entry for entry in listed if isinstance(entry, dict) and name in [entry.get(key) for key in keys])
    return next(named, {})
