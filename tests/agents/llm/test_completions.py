"""Completions as servers send them, whole or streamed."""

import json
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from sleuth.agents.llm.completions import MAX_TOKENS, REASONED, Completion
from sleuth.agents.llm.endpoint import read_completion
from sleuth.agents.llm.errors import ServerError
from sleuth.agents.model import Reply, first_token_probability, perplexity
from sleuth.tools.http import UnusableReply

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def chunk(text: str | None = None, *, finish: str | None = None, **parts: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish, **parts}
    return {"id": "1", "created": 5, "model": "tiny", "choices": [choice], "usage": None}


CHUNKS = [chunk(""), chunk("In "), chunk("Varn.\u2028\n"), chunk(finish="stop"), {"choices": [], "usage": USAGE}]


def written(*chunks: Any, end: str = "data: [DONE]\n\n", line: str = "\n") -> bytes:
    events = "".join(f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in chunks)
    return f"{events}{end}".replace("\n", line).encode()


@dataclass
class Heard:
    """A listener that keeps the texts."""

    texts: list[str] = field(default_factory=list)

    def delta(self, text: str) -> None:
        self.texts.append(text)

    def reset(self) -> None:
        self.texts.clear()


async def read(stream: bytes) -> tuple[Completion, list[str]]:
    """Return the completion of a stream of bytes, and its texts."""

    async def pieces() -> AsyncIterator[bytes]:
        yield stream

    heard = Heard()
    response = httpx2.Response(200, content=pieces(), request=httpx2.Request("POST", "http://127.0.0.1/v1"))
    response.headers["content-type"] = "text/event-stream"
    return await read_completion(response, heard), heard.texts


@pytest.mark.parametrize(
    ("stream", "text"),
    [
        (written(*CHUNKS, end=""), "In Varn.\u2028\n"),
        (written(*CHUNKS[:4]), "In Varn.\u2028\n"),
        (written(*CHUNKS[:4], {"choices": [], "usage": None}), "In Varn.\u2028\n"),
        (written(*CHUNKS)[:-60], "In Varn.\u2028\n"),
    ],
    ids=["no done event", "no usage", "null usage", "cut in the usage"],
)
async def test_assemble_accepts_incomplete_streams(stream: bytes, text: str) -> None:
    _, texts = await read(stream)
    assert "".join(texts) == text


@pytest.mark.parametrize(
    ("stream", "fault"),
    [
        (written(*CHUNKS[:2], end=""), "ends before the reply does"),
        (written(*CHUNKS[:2], end='data: {"id": "1", "choi\n\n'), "not JSON"),
        (written(*CHUNKS[:2], end="data: 7\n\n"), "no object"),
        (b"", "ends before"),
        (written({"choices": [], "usage": USAGE}), "no choices"),
        (b"data: " + b"[" * 100_000 + b"\n\n", "not JSON"),
    ],
    ids=["cut", "half an event", "a number", "nothing", "no choices", "nested"],
)
async def test_assemble_of_broken_stream_raises_malformed(stream: bytes, fault: str) -> None:
    with pytest.raises(UnusableReply, match=fault):
        await read(stream)


def completion(**parts: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}
    return {"model": "tiny", "choices": [choice | parts.pop("choice", {})], "usage": USAGE, **parts}


def read_reply(body: Any) -> Reply:
    completion = Completion()
    completion.add(body)
    completion.end()
    return completion.reply(model="listed", seconds=0.5)


def with_logprobs(*tokens: Any) -> dict[str, Any]:
    return completion(choice={"logprobs": {"content": list(tokens)}})


TOKEN = {"token": "Yes", "logprob": -0.5, "top_logprobs": [{"token": "Yes", "logprob": -0.5}]}


def test_reply_of_a_sound_completion_has_all_its_parts() -> None:
    assert read_reply(with_logprobs(TOKEN, {"token": "<end>", "logprob": -1, "top_logprobs": None})) == {
        "text": "Yes",
        "finish": "stop",
        "model": "tiny",
        "usage": {"prompt_tokens": 7, "cached_tokens": 4, "completion_tokens": 3},
        "seconds": 0.5,
        "logprobs": [
            {"token": "Yes", "logprob": -0.5, "top": {"Yes": -0.5}},
            {"token": "<end>", "logprob": -1.0, "top": {}},
        ],
        "warnings": [],
    }


@pytest.mark.parametrize(
    "logprobs",
    [
        [],
        {"content": [None]},
        *(
            {"content": [TOKEN | odd]}
            for odd in ({"logprob": None}, {"logprob": "-0.5"}, {"logprob": 5}, {"token": None})
        ),
        {"content": [TOKEN | {"logprob": math.nan}]},
        {"content": [TOKEN | {"top_logprobs": [{"token": "Yes", "logprob": None}]}]},
        {"content": [TOKEN | {"top_logprobs": {"Yes": -0.5}}]},
        {"content": [{"logprob": -0.5}]},
    ],
)
def test_reply_of_unusable_log_probabilities_has_none(logprobs: Any) -> None:
    assert read_reply(completion(choice={"logprobs": logprobs}))["logprobs"] is None


@pytest.mark.parametrize("value", [-800.0, -1e308, -math.inf, -(10**30), 1e-7, -9999])
def test_probabilities_of_extreme_log_probabilities_are_numbers(value: float) -> None:
    alternatives = [{"token": "Yes", "logprob": value}, {"token": "No", "logprob": value}]
    reply = read_reply(with_logprobs(*[{"token": "Yes", "logprob": value, "top_logprobs": alternatives}] * 2))
    assert reply["logprobs"] is not None
    assert 0 <= first_token_probability(reply)[0] <= 1
    assert math.isfinite(perplexity(reply) or 1.0)


@pytest.mark.parametrize("count", ["7", 10**30, MAX_TOKENS + 1, -1, 1.5, True])
def test_reply_of_unusable_usage_counts_nothing(count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": count, "prompt_tokens_details": {"cached_tokens": 4}}
    assert read_reply(completion(usage=usage))["usage"] == dict.fromkeys(
        ("prompt_tokens", "cached_tokens", "completion_tokens"), 0
    )


def test_reply_of_a_message_in_parts_without_usage_has_their_texts() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Y"}, {"type": "text", "text": "es"}, 7]
    reply = read_reply(completion(choice={"message": {"content": parts}}, usage=None))
    assert (reply["text"], reply["usage"]["prompt_tokens"], reply["warnings"]) == ("Yes", 0, [])


def test_reply_of_texts_with_half_characters_can_be_stored() -> None:
    odd = {"token": "\ud83d", "logprob": -0.5, "top_logprobs": [{"token": "a\x00\ud83d", "logprob": -0.5}]}
    body = with_logprobs(odd) | {"model": "ti\ud83dny"}
    body["choices"][0]["message"]["content"] = "a\x00b\ud83d"
    reply = read_reply(body)
    assert (reply["text"], reply["model"]) == ("ab\ufffd", "ti\ufffdny")
    assert json.dumps(reply, ensure_ascii=False).encode()


@pytest.mark.parametrize("content", [None, "", " "])
@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reply_without_text_is_its_complete_reasoning(content: str | None, name: str) -> None:
    reply = read_reply(completion(choice={"message": {"content": content, name: "Yes"}}))
    assert (reply["text"], reply["warnings"]) == ("Yes", [REASONED])
    cut_off = completion(choice={"message": {"content": content, name: "Well"}, "finish_reason": "length"})
    assert (read_reply(cut_off)["text"].strip(), read_reply(cut_off)["warnings"]) == ("", [])
    answered = read_reply(completion(choice={"message": {"content": "No", name: "Yes?"}}))
    assert (answered["text"], answered["warnings"]) == ("No", [])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"error": {"message": "out of memory", "code": 503}}, 503),
        ({"error": {"message": "out of memory", "code": 7}}, 500),
        ({"error": "out of memory", "choices": []}, 500),
        ({"object": "error", "message": "out of memory", "code": 400}, 400),
    ],
)
async def test_error_with_status_200_is_raised_whole_or_streamed(body: dict[str, Any], status: int) -> None:
    with pytest.raises(ServerError) as whole:
        read_reply(body)
    with pytest.raises(ServerError) as streamed:
        await read(written(chunk("In "), body))
    for raised in (whole, streamed):
        assert (raised.value.status, raised.value.detail) == (status, "out of memory")
