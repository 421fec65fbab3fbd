"""Context windows of models whose server does not list them: Ollama, llama.cpp and LM Studio.

| server    | request                           | field                              |
| --------- | --------------------------------- | ---------------------------------- |
| Ollama    | `GET /api/ps`, `POST /api/show`   | `context_length`, `num_ctx`        |
| llama.cpp | `GET /props`                      | `default_generation_settings.n_ctx` |
| LM Studio | `GET /api/v0/models`              | `loaded_context_length`            |

Ollama and LM Studio decide on the window when they load a model, so a model that is not loaded yet is loaded first.
Ollama's default is 4,096 tokens on machines with less than 24 GiB of GPU memory, and it cuts longer prompts silently.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
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

_CHARACTERS_PER_TOKEN = {
    "[\u2e80-\uabff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]": 1.7,  # Chinese and Japanese
    "[\u1100-\u11ff\uac00-\ud7ff]": 2.2,  # Hangul
    "[\u0370-\u10ff\u1200-\u1dff]": 4.5,  # Greek, Cyrillic, Arabic, Thai and others
}
_LATIN = 8
"""Above the average of any tokenizer on prose in a script, without white space between words counted twice."""

CUT = (
    "the model server read only a part of a prompt: its context window is smaller than sleuth assumes. Enlarge it "
    "(Ollama: OLLAMA_CONTEXT_LENGTH; llama.cpp: --ctx-size; LM Studio: the model's context length)"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class ContextWindow:
    """The context window of a model.

    Attributes:
        tokens: tokens of prompt and reply together; 0 if the model is not loaded yet.
        server: the kind of server, such as Ollama; empty if it is another one.
        is_assumed: the server does not report the window.
        longest: tokens that the model itself supports; 0 if unknown.
        remedy: how to enlarge the window.
    """

    tokens: int
    server: str = ""
    is_assumed: bool = False
    longest: int = 0
    remedy: str = ""

    @property
    def advice(self) -> str:
        """The remedy if the window is small and the model supports a larger one; otherwise empty."""
        can_grow = not self.longest or self.longest > self.tokens
        return self.remedy if 0 < self.tokens < CONTEXT_WINDOW and can_grow else ""


async def find_window(endpoint: Endpoint, model: str, *, load: bool = True) -> ContextWindow | None:
    """Return the context window of a model; None if the server is of another kind.

    Args:
        endpoint: the server.
        model: the model's name in its list.
        load: load the model with a request of one token if its window depends on that.
    """
    try:
        window = await _ask_all(endpoint, model)
        if window is not None and window.tokens == 0 and load:
            await endpoint.probe(model, max_tokens=1)
            window = await _ask_all(endpoint, model)
    except ModelError:  # a proxy that refuses unknown paths; the first call reports a broken server
        return None
    return window


@cache  # once for a model in a process
def warn_if_small(model: str, window: ContextWindow) -> None:
    """Log a warning with the remedy if the context window is small and can be enlarged."""
    if window.advice:
        _log.warning(
            "%s has a context window of %s tokens in %s: long prompts lose passages. %s",
            model,
            f"{window.tokens:,}",
            window.server,
            window.advice,
        )


def was_cut(messages: Sequence[Message], prompt_tokens: int, window: int) -> bool:
    """Return whether a server has read only a part of a prompt, judging by the tokens that it reports.

    Servers that cut prompts report the tokens after the cut: those of a whole window, or far too few for the text.

    Args:
        messages: the prompt that was sent.
        prompt_tokens: the tokens that the server reports; 0 if it reports none.
        window: the context window that the prompt was fitted to.
    """
    text = "\n".join(" ".join(message["content"].split()) for message in messages)
    counts = {rate: len(re.findall(script, text)) for script, rate in _CHARACTERS_PER_TOKEN.items()}
    least = (len(text) - sum(counts.values())) / _LATIN + sum(count / rate for rate, count in counts.items())
    if not prompt_tokens or least < _SHORT_PROMPT:
        return False
    return prompt_tokens >= window or prompt_tokens < least


async def _ask_all(endpoint: Endpoint, model: str) -> ContextWindow | None:
    for ask in (_ollama, _llama_cpp, _lm_studio):
        window = await ask(endpoint, model)
        if window is not None:
            return window
    return None


async def _ollama(endpoint: Endpoint, model: str) -> ContextWindow | None:
    """Return the window of the loaded model; before that, the one that its Modelfile sets."""
    running = await endpoint.about("/api/ps")
    if "models" not in running:
        return None
    details = await endpoint.about("/api/show", {"model": model})
    loaded = _entry(running["models"], model, "name", "model")
    about = details.get("model_info")
    lengths = about.items() if isinstance(about, dict) else ()
    longest = max((token_count(value) for key, value in lengths if key.endswith(".context_length")), default=0)
    parameter = re.search(r"^num_ctx\s+(\d+)$", str(details.get("parameters")), re.MULTILINE)
    assumed = OLLAMA_WINDOW if loaded is not None else 0
    configured = int(parameter[1]) if parameter else assumed
    wished = min(_WISHED, longest or _WISHED)
    return ContextWindow(
        tokens=token_count((loaded or {}).get("context_length")) or configured,
        server="Ollama",
        longest=longest,
        remedy=f"Start Ollama with OLLAMA_CONTEXT_LENGTH={wished}, or set num_ctx in the model's Modelfile.",
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
    if listed is None or "max_context_length" not in listed:
        return None
    longest = token_count(listed["max_context_length"])
    return ContextWindow(
        tokens=token_count(listed.get("loaded_context_length")),
        server="LM Studio",
        longest=longest,
        remedy=f"Load it with: lms load {model} --context-length {min(_WISHED, longest or _WISHED)}",
    )


def _entry(entries: object, name: str, *keys: str) -> dict[str, Any] | None:
    """Return the entry of a list that has the name under one of the keys."""
    listed = entries if isinstance(entries, list) else []
    named = (each for each in listed if isinstance(each, dict) and name in [each.get(key) for key in keys])
    return next(named, None)
