"""Context windows of models whose server does not list them: Ollama, llama.cpp and LM Studio.

| server    | request                           | field                              |
| --------- | --------------------------------- | ---------------------------------- |
| Ollama    | `GET /api/ps`, `POST /api/show`   | `context_length`, `num_ctx`        |
| llama.cpp | `GET /props`                      | `default_generation_settings.n_ctx` |
| LM Studio | `GET /api/v0/models`              | `loaded_context_length`            |

Ollama and LM Studio decide on the window when they load a model, so a model that is not loaded yet is loaded first.
Ollama's default is 4,096 tokens on machines with less than 24 GiB of GPU memory, and it cuts longer prompts silently.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from sleuth.agents.llm.completions import token_count
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.agents.model import Message
from sleuth.tools.errors import ModelError

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
    named = (each for each in listed if isinstance(each, dict) and name in [each.get(key) for key in keys])
    return next(named, {})
