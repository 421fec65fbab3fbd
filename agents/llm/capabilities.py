"""Features of a model server, probed once per endpoint and model, and stored in a file.

| feature          | without it                                                          |
| ---------------- | ------------------------------------------------------------------- |
| schema           | the JSON schema is written into the prompt, the reply is parsed     |
| copies           | quotes are guided like any text; more of them fail verification     |
| choice           | the choices are written into the prompt, the reply is matched       |
| logprobs         | a probability is 0.5 (auto: 0 or 1 by the word), no perplexity      |
| tokenize         | prompts are estimated at two bytes per token                        |
| thinks           | no tokens are reserved for thoughts before an answer                |
| seed, temperature, stream_options | the parameter is not sent                          |

Every reply that lacks a schema, choice or logprobs has a warning. What a server refuses later is left out
of its calls from then on. Servers without schemas are probed each time: a probe may fail by chance. Delete the file to
probe the others again. Context windows are asked for separately (`sleuth.agents.llm.context_windows`).
"""

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from sleuth.agents.llm.completions import Completion
from sleuth.agents.llm.endpoint import Endpoint
from sleuth.agents.model import Message
from sleuth.agents.thoughts import without_thoughts
from sleuth.tools.errors import ModelTimeout

CHOICES = ["amber", "violet"]

THINKING_TOKENS = 2048
"""Additional tokens of a reply if the model thinks before it answers."""

_SCHEMA = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}

_READY = re.compile(r'\s*\{\s*"ready"\s*:\s*(?:true|false)\s*\}\s*')

_COPIES = {
    "type": "object",
    "properties": {"word": {"type": "string", "pattern": f"^(?:{'|'.join(CHOICES)})$"}},
    "required": ["word"],
    "additionalProperties": False,
    "x-guidance": {"key_separator": " : ", "whitespace_flexible": False},
}
"""A schema that only llguidance follows exactly: others ignore a long pattern, or take seconds for it."""

_LOGPROBS = {"logprobs": True, "top_logprobs": 20}


Capabilities = frozenset[str]
"""The features of a server."""

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
    known: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        known = json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8"))
    stored = known.get(key)
    if stored and "schema" in stored:
        return frozenset(stored)
    can = await probe(endpoint, model)
    with suppress(OSError):  # where it cannot be stored, the server is probed again
        await asyncio.to_thread(file.parent.mkdir, parents=True, exist_ok=True)
        text = json.dumps(known | {key: sorted(can)}, indent=1, sort_keys=True)
        await asyncio.to_thread(file.write_text, text, encoding="utf-8")
    return can


async def probe(endpoint: Endpoint, model: str) -> Capabilities:
    """Probe each feature with a few tokens: servers may silently ignore options.

    If the reply is cut off before its JSON ends, the model may think: then the probes have room for that.
    """
    plain, tokens, (guided, copied, chosen) = await asyncio.gather(
        endpoint.probe(model, **_LOGPROBS, max_tokens=4),
        endpoint.count_tokens(model, [Message(role="user", content="Good morning.")]),
        _probe_constraints(endpoint, model),
    )
    if guided.finish_reason == "length" and not _is_ready(guided):
        with suppress(ModelTimeout):
            guided, copied, chosen = await _probe_constraints(endpoint, model, max_tokens=THINKING_TOKENS)
    found = {
        "schema": _is_ready(guided),
        "copies": without_thoughts(copied.text).strip() in [f'{{"word" : "{word}"}}' for word in CHOICES],
        "choice": without_thoughts(chosen.text).strip() in CHOICES,
        "logprobs": bool(plain.tokens),
        "tokenize": tokens is not None,
        "thinks": any(
            (each.thoughts and not each.is_reasoned) or without_thoughts(each.text) != each.text
            for each in (plain, guided, copied, chosen)
        ),
    }
    return PARAMETERS | {name for name, has in found.items() if has}


async def _probe_constraints(endpoint: Endpoint, model: str, **options: object) -> Sequence[Completion]:
    return await asyncio.gather(
        endpoint.probe(model, response_format=schema_format("probe", _SCHEMA), **options),
        endpoint.probe(model, response_format=schema_format("copies", _COPIES), **options),
        endpoint.probe(model, structured_outputs={"choice": CHOICES}, **options),
    )


def _is_ready(guided: Completion) -> bool:
    return _READY.fullmatch(without_thoughts(guided.text)) is not None


def schema_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the `response_format` that guides a reply by a JSON schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
