"""What streams of chunks come to, however they arrive and wherever they break."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from sleuth.agents.faults import Malformed
from sleuth.agents.streams import gather

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}


def chunk(text: str | None = None, *, finish: str | None = None, **parts: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if text is None else {"content": text}, "finish_reason": finish, **parts}
    return {"id": "1", "created": 5, "model": "tiny", "choices": [choice], "usage": None}


TALE = [chunk(""), chunk("In "), chunk("Varn.\u2028\n"), chunk(finish="stop"), {"choices": [], "usage": USAGE}]


def written(*chunks: Any, end: str = "data: [DONE]\n\n", line: str = "\n") -> bytes:
    events = "".join(f"data: {json.dumps(each, ensure_ascii=False)}\n\n" for each in chunks)
    return f"{events}{end}".replace("\n", line).encode()


async def read(stream: bytes, size: int = 1 << 20) -> tuple[int, dict[str, Any], list[str]]:
    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(stream), size):
            yield stream[start : start + size]

    said: list[str] = []
    status, body = await gather(pieces(), said.append)
    return status, body, said


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("line", ["\n", "\r\n"])
async def test_a_stream_is_the_reply_it_would_have_been_however_it_is_cut(size: int, line: str) -> None:
    status, body, said = await read(b": hello\n\nevent: chunk\n" + written(*TALE, line=line), size)
    assert (status, said) == (200, ["In ", "Varn.\u2028\n"])
    message = {"role": "assistant", "content": "In Varn.\u2028\n"}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    about = {"id": "1", "object": "chat.completion", "created": 5, "model": "tiny"}
    assert body == {**about, "choices": [choice], "usage": USAGE}


async def test_log_probabilities_stand_in_their_order_also_those_without_words() -> None:
    tokens = [{"token": word, "logprob": -0.5, "top_logprobs": []} for word in ("Yes", "<end>")]
    first, last = (chunk(text, logprobs={"content": [token]}) for text, token in zip(("Yes", ""), tokens, strict=True))
    _, body, _ = await read(written(first, last, *TALE[3:]))
    assert body["choices"][0]["logprobs"] == {"content": tokens}


async def test_an_end_that_comes_twice_counts_once() -> None:
    cut_off = chunk(finish="length")
    _, body, said = await read(written(*TALE[:3], cut_off, cut_off, TALE[4], TALE[4]) + written(chunk("more")))
    assert (body["choices"][0]["finish_reason"], body["usage"], "".join(said)) == ("length", USAGE, "In Varn.\u2028\n")


async def test_the_mark_of_the_end_may_be_missing() -> None:
    _, body, _ = await read(written(*TALE, end=""))
    assert body["choices"][0]["message"]["content"] == "In Varn.\u2028\n"


@pytest.mark.parametrize(
    ("stream", "fault"),
    [
        (written(*TALE[:2], end=""), "ends before the reply does"),
        (written(*TALE)[:-60], "no usage"),
        (written(*TALE[:4]), "no usage"),
        (written(*TALE[:2], end='data: {"id": "1", "choi\n\n'), "not JSON"),
        (written(*TALE[:2], end="data: 7\n\n"), "no object"),
        (b"", "ends before"),
    ],
    ids=["cut", "cut in the usage", "no usage", "half an event", "a number", "nothing"],
)
async def test_a_broken_stream_is_no_reply(stream: bytes, fault: str) -> None:
    with pytest.raises(Malformed, match=fault):
        await read(stream)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"error": {"message": "out of memory", "code": 503}}, 503),
        ({"error": {"message": "out of memory", "code": "oom"}}, 500),
        ({"error": "out of memory"}, 500),
        ({"object": "error", "message": "out of memory", "code": 400}, 400),
    ],
)
async def test_an_error_in_the_middle_is_the_response_it_would_have_been(error: dict[str, Any], status: int) -> None:
    found, body, _ = await read(written(chunk("In "), error))
    assert (found, body["error"]["message"]) == (status, "out of memory")


async def test_a_stream_without_any_choice_is_a_completion_without_one() -> None:
    _, body, said = await read(written({"choices": [], "usage": USAGE}))
    assert (body["choices"], said) == ([], [])
