"""The checks of `sleuth doctor --model`: three small questions to the model, in the way that methods ask theirs."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from sleuth.agents.llm.completions import REASONED
from sleuth.agents.llm.context_windows import ContextWindow
from sleuth.agents.model import Message, Model, Request, Sampling
from sleuth.agents.model_calls.output_parsing import Unparsable, parse
from sleuth.studio.cli.doctor_checks import Finding
from sleuth.studio.client import client_class
from sleuth.tools.errors import SleuthError
from sleuth.tools.settings import Settings

_SERVE = "sleuth model serve --print-command MODEL prints the flags of a vLLM server, which has all of this"


class _Word(BaseModel):
    color: str
    letters: int


_SCHEMA_QUESTION = "Which of these words names a color, and how many letters has it: lamp, violet, chair?"
_CHOICE_QUESTION = "Is the sky blue on a clear day? Answer yes or no."
_STREAM_QUESTION = "Name three colors of the rainbow."


@dataclass
class _Parts:
    """Listener that keeps the parts of a streamed reply."""

    texts: list[str] = field(default_factory=list)

    def delta(self, text: str) -> None:
        """Receive further tokens."""
        self.texts.append(text)

    def reset(self) -> None:
        """Discard the tokens so far."""
        self.texts.clear()


async def examine_model(settings: Settings) -> list[Finding]:
    """Probe the server again and ask the model; one failed finding if it does not answer."""
    await asyncio.to_thread((settings.home / "capabilities.json").unlink, missing_ok=True)
    try:
        client = await asyncio.to_thread(client_class)
        async with client.open(settings) as model:
            window = window_finding(model.name_of("default"), model.window_of("default"))
            return [window, *await ask_three_questions(model)]
    except SleuthError as error:
        return [Finding(name="model", ok=False, detail=str(error), fix="sleuth model serve, or see SLEUTH_MODEL_URL")]


async def ask_three_questions(model: Model) -> list[Finding]:
    """Return whether the model follows a schema, gives log-probabilities and streams, one finding each.

    Only a model that does not follow schemas cannot be used; for the rest there are fallbacks.

    Raises:
        ModelError: the model server gives no usable reply.
    """
    return [await _schema_finding(model), await _logprobs_finding(model), await _stream_finding(model)]


def window_finding(name: str, window: ContextWindow) -> Finding:
    """Return the context window of a model as a finding, with the remedy if it is small."""
    by = "assumed, as the server does not report it" if window.is_assumed else window.server
    detail = f"{name} has {window.tokens:,} tokens" + (f" ({by})" if by else "")
    return Finding(name="context window", ok=True, detail=detail, fix=window.advice)


async def _schema_finding(model: Model) -> Finding:
    reply = await model.call(_request(_SCHEMA_QUESTION, schema=_Word.model_json_schema()))
    how = "written into the prompt" if {*reply["warnings"]} - {REASONED} else "guided by the server"
    try:
        parse(reply["text"], _Word, cut_off=reply["finish"] == "length")
    except Unparsable as fault:
        detail = f"the reply does not follow the schema ({how}): {fault}"
        return Finding(name="schemas", ok=False, detail=detail, fix=f"use a larger model; {_SERVE}")
    return Finding(name="schemas", ok=True, detail=f"the reply follows the schema ({how})")


async def _logprobs_finding(model: Model) -> Finding:
    sampling = Sampling(max_tokens=4, top_logprobs=20)
    reply = await model.call(_request(_CHOICE_QUESTION, choices=("yes", "no"), sampling=sampling))
    if reply["logprobs"]:
        return Finding(name="log-probabilities", ok=True, detail="given")
    detail = "not given: methods take yes and no for certain, and crp-rag has no perplexity"
    return Finding(name="log-probabilities", ok=True, detail=detail, fix=_SERVE)


async def _stream_finding(model: Model) -> Finding:
    parts = _Parts()
    await model.call(_request(_STREAM_QUESTION, listener=parts))
    if parts.texts:
        return Finding(name="streaming", ok=True, detail=f"the reply came in {len(parts.texts)} parts")
    return Finding(name="streaming", ok=True, detail="not possible: answers appear as a whole", fix=_SERVE)


def _request(question: str, *, sampling: Sampling | None = None, **more: Any) -> Request:  # noqa: ANN401 - its fields
    return Request(
        call_id="doctor",
        role="default",
        prompt="doctor",
        messages=(Message(role="user", content=question),),
        input={},
        sampling=sampling or Sampling(max_tokens=64),
        **more,
    )
