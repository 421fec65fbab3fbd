"""The gateway against a real vLLM server."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from model_server import Recorder

from sleuth.agents.formatting import Source
from sleuth.agents.llm.client import LLMClient
from sleuth.agents.model import Message, Request, Sampling
from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.model_calls.output_parsing import parse
from sleuth.agents.role import Role
from sleuth.agents.roles.inputs import SourcesInput
from sleuth.agents.roles.judging import REVIEW, REVIEW_STEP
from sleuth.agents.roles.planning import PLAN, PLAN_IN_ORDER, REFINE
from sleuth.agents.roles.reading import ANSWER, CONCLUDE, DRAFT, READ
from sleuth.agents.roles.reasoning import ENTITIES, INFER, MONITOR, REASON, RECALL, REQUERY
from sleuth.graphs.evidence.text_spans import find_quote
from sleuth.tools.errors import ContextTooLong
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.vllm


@pytest.fixture
async def model(vllm_url: str, tmp_path: Path) -> AsyncIterator[LLMClient]:
    async with LLMClient.open(Settings(model_url=vllm_url, home=tmp_path, concurrency=2)) as opened:
        yield opened


def asked(text: str, **options: Any) -> Request:
    messages = (Message(role="user", content=text),)
    return Request(
        call_id=uuid.uuid4().hex, role="drafter", prompt="drafter/draft", messages=messages, input={}, **options
    )


@pytest.mark.nightly
async def test_every_schema_guides_the_model(vllm_url: str, tmp_path: Path) -> None:
    roles: list[Role[Any, Any]] = [
        *(PLAN, PLAN_IN_ORDER, READ, DRAFT, CONCLUDE, REFINE, REVIEW, REVIEW_STEP, ANSWER),
        *(REASON, MONITOR, RECALL, ENTITIES, INFER, REQUERY),
    ]
    text = "Fill in something short about the town of Varn."
    async with LLMClient.open(Settings(model_url=vllm_url, home=tmp_path, concurrency=len(roles))) as model:
        requests = (asked(text, schema=role.schema(), sampling=role.sampling) for role in roles)
        replies = await asyncio.gather(*map(model.call, requests))
    for role, reply in zip(roles, replies, strict=True):
        assert reply["finish"] == "stop", role.prompt
        output = parse(reply["text"], role.output)
        assert isinstance(output, role.output)
        jsonschema.Draft202012Validator(role.schema()).validate(output.model_dump(include=set(output.model_fields_set)))


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(4))
async def test_a_quote_is_a_copy(seed: int, model: LLMClient) -> None:
    about = 'The "Lund" (built 1604) is a ferry — 14.5 m long — at Varn. Its owner, Ada\\Lund & Co., sold it in 1711.'
    said = f"{about}\n\n| a | 中文 |"
    sources = (Source(title="Ferry", text=said), Source(title="Empty", text=""), Source(title="Isk", text="A river."))
    given = SourcesInput(question="Who sold the ferry?", sources=sources)
    sampling = replace(DRAFT.sampling, temperature=1.5, seed=seed)
    request = asked("", schema=DRAFT.schema(), sampling=sampling)
    reply = await model.call(replace(request, messages=render_messages(DRAFT, given)))
    draft = parse(reply["text"], DRAFT.output)
    assert draft.citations
    for quote in draft.citations:
        assert quote.source in (1, 3) and find_quote(quote.quote, sources[quote.source - 1].text), reply["text"]


async def test_tokens_are_counted_as_the_server_counts_them(model: LLMClient) -> None:
    request = asked("Ünïcode and 12345 numbers. " * 9, sampling=Sampling(max_tokens=1))
    reply = await model.call(request)
    assert await model.count_tokens(request.messages, role="drafter") == reply["usage"]["prompt_tokens"]


async def test_a_repeated_beginning_is_cached(model: LLMClient) -> None:
    beginning = f"{uuid.uuid4()} " + "The harbour of Varn has three piers. " * 40
    first = await model.call(asked(f"{beginning} One?", sampling=Sampling(max_tokens=1)))
    second = await model.call(asked(f"{beginning} Two?", sampling=Sampling(max_tokens=1)))
    assert second["usage"]["cached_tokens"] >= 128 > first["usage"]["cached_tokens"]


async def test_a_begun_reply_is_continued_up_to_the_stop_text(model: LLMClient) -> None:
    whole = await model.call(asked("Count from one to nine in words.", sampling=Sampling(max_tokens=40)))
    words = whole["text"].split(" ")
    begun = " ".join(words[:3])
    rest = whole["text"].removeprefix(begun)
    stop = next(word for word in words[4:] if word and rest.count(word) == 1 and word not in begun)
    request = asked("Count from one to nine in words.", sampling=Sampling(max_tokens=40, stop=(stop,)))
    begins = Message(role="assistant", content=begun)
    reply = await model.call(replace(request, messages=(*request.messages, begins)))
    assert reply["text"] == f"{rest.partition(stop)[0]}{stop}"
    assert reply["finish"] == "stop"


async def test_a_prompt_that_is_too_long(model: LLMClient) -> None:
    with pytest.raises(ContextTooLong, match="finds the prompt too long"):
        await model.call(asked("word " * (model.context_window + 1)))


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"sampling": Sampling(max_tokens=20)}, marks=pytest.mark.nightly),
        {"schema": DRAFT.schema(), "sampling": DRAFT.sampling},
        {"choices": ("quince", "medlar")},
    ],
    ids=["cut off", "schema", "choices"],
)
async def test_a_stream_is_the_reply_that_comes_in_one_piece(options: dict[str, Any], model: LLMClient) -> None:
    text = "Name a fruit that grows by the sea of Varn, in two words."
    await model.call(asked(text, **options))  # from here on the prompt is in the server's cache
    recorder = Recorder()
    streamed = await model.call(asked(text, listener=recorder, **options))
    whole = await model.call(asked(text, **options))
    assert {**streamed, "seconds": 0} == {**whole, "seconds": 0}
    assert "".join(recorder.texts) == whole["text"]
    assert len(recorder.texts) > 1 or whole["usage"]["completion_tokens"] <= 2, "it came in one piece"
