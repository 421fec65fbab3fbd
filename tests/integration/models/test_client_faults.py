import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from model_server import (
    EVERYTHING,
    ModelServer,
    completion,
    dawdle,
    garbage,
    hang,
    serving,
    status,
    truncated,
)
from starlette.responses import Response, StreamingResponse

from sleuth import prompts
from sleuth.agents.llm.client import RETRIES, LLMClient
from sleuth.agents.model import Message, Request, Sampling
from sleuth.agents.model_calls.output_parsing import parse
from sleuth.tools.errors import ContextTooLong, ModelError, ModelTimeout, ModelUnavailable, UnknownName, UsageError
from sleuth.tools.http import MAX_REPLY_BYTES
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


def asked(call_id: str = "call-1", role: str = "drafter", **options: Any) -> Request:
    messages = (Message(role="system", content="Be brief."), Message(role="user", content="Where is Varn?"))
    return Request(call_id=call_id, role=role, prompt="drafter/draft", messages=messages, input={}, **options)


@asynccontextmanager
async def gateway(server: ModelServer, home: Path, **options: Any) -> AsyncIterator[LLMClient]:
    async with serving(server), LLMClient.open(Settings(model_url=server.url, home=home, **options)) as opened:
        yield opened


async def test_sends_what_was_asked_and_reads_what_came(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(completion("In the <b>east</b>.", finish="length"))
    async with gateway(server, tmp_path, model_key="secret") as model:
        reply = await model.call(asked(sampling=Sampling(max_tokens=9, seed=5, temperature=0.5), schema=SCHEMA))
    (body,), (headers,) = server.calls, server.headers
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is Varn?"},
    ]
    assert (body["model"], body["max_tokens"], body["seed"], body["temperature"]) == ("tiny", 9, 5, 0.5)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (headers["x-sleuth-call"], headers["authorization"]) == ("call-1", "Bearer secret")
    assert (reply["text"], reply["finish"], reply["model"]) == ("In the <b>east</b>.", "length", "tiny")
    assert reply["usage"] == {"prompt_tokens": 7, "cached_tokens": 4, "completion_tokens": 3}
    assert (reply["logprobs"], reply["warnings"]) == (None, [])


async def test_token_precedes_the_first_user_message(tmp_path: Path) -> None:
    server = ModelServer()
    async with gateway(server, tmp_path) as model:
        await model.call(asked(soft_token="AAAA"))
    (body,) = server.calls
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "prompt_embeds", "data": "AAAA"}, {"type": "text", "text": "Where is Varn?"}],
        },
    ]


async def test_token_of_another_size_is_refused_with_a_remedy(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(status(400, "`prompt_embeds` hidden_size 32 does not match the model's hidden_size 576."))
    async with gateway(server, tmp_path) as model:
        with pytest.raises(
            ModelError, match=r"the token of this graph model: .* 576\. .*Serve the language model that"
        ):
            await model.call(asked(soft_token="AAAA"))
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "fault",
    [
        status(500),
        status(503),
        status(429),
        garbage("{not json"),
        garbage("<html>busy</html>", "text/html"),
        truncated(),
        {**completion(), "choices": []},
        {**completion(), "choices": None},
        {"error": {"message": "oh"}},
        {**completion(), "choices": [{"index": 0, "message": None}]},
    ],
    ids=["500", "503", "429", "garbage", "html", "truncated", "empty", "null", "error", "no message"],
)
async def test_a_passing_fault_is_got_over_with_the_same_call_id(fault: Any, tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(fault)
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked()))["text"] == "fine"
    assert [headers["x-sleuth-call"] for headers in server.headers] == ["call-1", "call-1"]


async def test_client_waits_for_retry_after(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(status(429, headers={"Retry-After": "1"}))
    async with gateway(server, tmp_path) as model:
        started = time.monotonic()
        await model.call(asked())
        assert time.monotonic() - started >= 1


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (status(500, "out of memory"), ModelUnavailable, "fails with status 500: out of memory"),
        (status(429), ModelUnavailable, "overloaded .*SLEUTH_CONCURRENCY"),
        ({**completion(), "choices": []}, ModelUnavailable, "no usable reply, also after retries: it has no choices"),
        (garbage("{"), ModelUnavailable, "its body is not JSON"),
    ],
    ids=["500", "429", "empty", "garbage"],
)
async def test_a_lasting_fault_is_named_after_a_few_tries(
    fault: Any, kind: type[ModelError], message: str, tmp_path: Path
) -> None:
    server = ModelServer()
    server.script.extend([fault] * 50)
    async with gateway(server, tmp_path) as model:
        with pytest.raises(kind, match=message):
            await model.call(asked())
    assert len(server.calls) == RETRIES + 1


VLLM = "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens"


@pytest.mark.parametrize(
    ("fault", "kind", "message"),
    [
        (status(400, VLLM), ContextTooLong, "maximum context length"),
        (
            status(400, "too long", error={"code": "context_length_exceeded"}),
            ContextTooLong,
            "finds the prompt too long",
        ),
        (status(400, "the request exceeds the available context size"), ContextTooLong, "context size"),
        (status(400, "temperature must be positive"), ModelError, "status 400: .*temperature must be positive"),
        (
            status(400, "`prompt_embeds` hidden_size 32 does not match the model's hidden_size 576."),
            ModelError,
            r"cannot take the token of this graph model: .* 576\. .*Serve the language model that it was tuned with",
        ),
        (status(401), ModelError, "refuses the key .*SLEUTH_MODEL_KEY"),
        (status(403), ModelError, "refuses the key"),
        (status(404, "The model does not exist"), UnknownName, "no model 'tiny'.* The server has: tiny"),
    ],
    ids=["vllm", "openai", "llama.cpp", "400", "embedding", "401", "403", "404"],
)
async def test_permanent_errors_are_not_retried(
    fault: Any, kind: type[Exception], message: str, tmp_path: Path
) -> None:
    server = ModelServer()
    server.script.append(fault)
    async with gateway(server, tmp_path) as model:
        with pytest.raises(kind, match=message) as raised:
            await model.call(asked())
    assert type(raised.value) is kind
    assert len(server.calls) == 1


async def test_a_server_that_hangs_is_left_after_the_timeout(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(hang)
    async with gateway(server, tmp_path, timeout=0.5) as model:
        with pytest.raises(ModelTimeout, match=r"no reply within 0.5 s: see SLEUTH_TIMEOUT"):
            await model.call(asked())
        await asyncio.wait_for(server.gone.wait(), 5)


async def test_cancelling_closes_the_request_and_frees_its_slot(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(hang)
    async with gateway(server, tmp_path, concurrency=1) as model:
        task = asyncio.create_task(model.call(asked()))
        await asyncio.wait_for(server.begun.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), 5)
        assert (await model.call(asked("call-2")))["text"] == "fine"


async def test_concurrency_is_limited(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.extend([dawdle] * 12)
    async with gateway(server, tmp_path, concurrency=3) as model:
        await asyncio.gather(*(model.call(asked(str(i))) for i in range(12)))
    assert server.most_running == 3


async def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(ModelUnavailable, match=r"No model server answers at http.*`sleuth model serve`"):
        async with LLMClient.open(Settings(model_url="http://127.0.0.1:9/v1", home=tmp_path)):
            pass


async def test_a_server_that_goes_away(tmp_path: Path) -> None:
    server = ModelServer()
    async with serving(server):
        opening = LLMClient.open(Settings(model_url=server.url, home=tmp_path))
        model = await opening.__aenter__()
    with pytest.raises(ModelUnavailable, match="No model server answers"):
        await model.call(asked())
    await opening.__aexit__(None, None, None)


@pytest.mark.parametrize("path", ["", "/v2"])
async def test_a_url_without_the_api(path: str, tmp_path: Path) -> None:
    async with serving(ModelServer()) as server:
        with pytest.raises(UsageError, match="lack its /v1"):
            async with LLMClient.open(Settings(model_url=server.url.removesuffix("/v1") + path, home=tmp_path)):
                pass


async def test_a_url_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="must begin with http"):
        async with LLMClient.open(Settings(model_url="localhost:8000", home=tmp_path)):
            pass


TWO = [{"id": "small", "max_model_len": 2048}, {"id": "large"}]


async def test_several_models_and_none_chosen(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"several models or none \(large, small\): choose one with SLEUTH_MODEL"):
        async with gateway(ModelServer(models=TWO), tmp_path):
            pass


@pytest.mark.parametrize("options", [{"model": "larg"}, {"model": "small", "models": {"planner": "larg"}}])
async def test_a_model_that_is_not_served(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no model 'larg'\. Did you mean large"):
        async with gateway(ModelServer(models=TWO), tmp_path, **options):
            pass


async def test_a_role_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no role 'plannr'\. Did you mean planner"):
        async with gateway(ModelServer(), tmp_path, models={"plannr": "tiny"}):
            pass


async def test_each_role_has_its_model_and_the_smallest_context_counts(tmp_path: Path) -> None:
    server = ModelServer(models=TWO)
    async with gateway(server, tmp_path, model="large", models={"planner": "small"}) as model:
        await model.call(asked(role="planner"))
        await model.call(asked(role="drafter"))
        assert model.context_window == 2048
    assert [body["model"] for body in server.calls] == ["small", "large"]


async def test_a_server_is_probed_once(tmp_path: Path) -> None:
    server = ModelServer()
    async with serving(server):
        for _ in range(2):
            async with LLMClient.open(Settings(model_url=server.url, home=tmp_path)) as model:
                await model.call(asked(schema=SCHEMA))
    assert server.probes == 5


@pytest.mark.parametrize("record", ["{", '{"URL tiny 1.0": {"schema": true, "choice": true}}'], ids=["broken", "older"])
async def test_unusable_record_is_created_again(record: str, tmp_path: Path) -> None:
    server = ModelServer()
    async with serving(server):
        (tmp_path / "capabilities.json").write_text(record.replace("URL", server.url))
        for _ in range(2):
            async with LLMClient.open(Settings(model_url=server.url, home=tmp_path)):
                assert server.probes == 5


async def test_without_schemas_the_prompt_has_it_and_the_reply_is_warned(tmp_path: Path) -> None:
    server = ModelServer(supports=EVERYTHING - {"schema"})
    async with gateway(server, tmp_path) as model:
        reply = await model.call(asked(schema=SCHEMA))
        assert model.context_window == 4096 - 512
    (body,) = server.calls
    assert "response_format" not in body
    assert body["messages"][-1]["content"].endswith(
        'schema:\n{"type": "object", "properties": {"name": {"type": "string"}}}'
    )
    assert len(reply["warnings"]) == 1 and "JSON schemas" in reply["warnings"][0]


async def test_without_choices_the_prompt_names_them_and_the_reply_is_warned(tmp_path: Path) -> None:
    server = ModelServer(supports=EVERYTHING - {"choice"})
    server.script.append(completion("Yes."))
    async with gateway(server, tmp_path) as model:
        reply = await model.call(asked(choices=("yes", "no")))
    (body,) = server.calls
    assert "structured_outputs" not in body
    assert body["messages"][-1]["content"].endswith("one of: yes, no")
    assert parse(reply["text"], str, choices=("yes", "no")) == "yes"
    assert "choices" in reply["warnings"][0]


async def test_without_log_probabilities_none_are_asked_for(tmp_path: Path) -> None:
    server = ModelServer(supports=EVERYTHING - {"logprobs"})
    async with gateway(server, tmp_path) as model:
        reply = await model.call(asked(sampling=Sampling(top_logprobs=20)))
    assert "logprobs" not in server.calls[0]
    assert reply["logprobs"] is None
    assert "no log-probabilities" in reply["warnings"][0]


async def test_without_a_tokenizer_the_count_is_careful(tmp_path: Path) -> None:
    async with gateway(ModelServer(), tmp_path / "a") as model:
        assert await model.count_tokens(asked().messages, role="drafter") == 5
    async with gateway(ModelServer(supports=EVERYTHING - {"tokenize"}), tmp_path / "b") as model:
        assert await model.count_tokens(asked().messages, role="drafter") > 20


async def test_nothing_blocks_the_event_loop(tmp_path: Path) -> None:
    prompts._loaded.clear()  # as in a fresh process
    server = ModelServer(supports=frozenset())
    async with serving(server):
        settings = Settings(model_url=server.url, home=tmp_path)
        with blockbuster_ctx("sleuth"):
            async with LLMClient.open(settings) as model:
                await model.call(asked(schema=SCHEMA))
                await model.call(asked(choices=("yes", "no")))
                await model.count_tokens(asked().messages, role="drafter")
    assert len(server.calls) == 2


async def test_a_model_that_thinks_gets_room_for_it(tmp_path: Path) -> None:
    server = ModelServer(thinks=True)
    server.script.append(completion("<think>{maybe}</think>Yes", reasoning_content="hm"))
    async with gateway(server, tmp_path) as model:
        reply = await model.call(asked(sampling=Sampling(max_tokens=8)))
        assert model.context_window == 4096 - 2048
    assert server.calls[0]["max_tokens"] == 8 + 2048
    assert parse(reply["text"], str) == "Yes"


async def test_a_reply_without_content_is_empty(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(completion(None, reasoning_content="so much to think about"))
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked()))["text"] == ""


async def endless(sent: list[int], piece: bytes) -> AsyncIterator[bytes]:
    """Far more than a reply may have; counts what is sent."""
    for _ in range(16 * MAX_REPLY_BYTES // len(piece)):
        sent[0] += len(piece)
        yield piece
        await asyncio.sleep(0)


@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("code", [200, 400])
async def test_gateway_given_an_endless_reply_stops_reading_it(media_type: str, code: int, tmp_path: Path) -> None:
    server, sent = ModelServer(), [0]
    pieces = endless(sent, b"data: " + b"x" * (1 << 20))
    server.script.append(StreamingResponse(pieces, code, media_type=media_type))
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked()))["text"] == "fine"
    assert MAX_REPLY_BYTES < sent[0] < 4 * MAX_REPLY_BYTES


async def test_gateway_given_only_endless_replies_names_the_limit(tmp_path: Path) -> None:
    server, sent = ModelServer(), [0]
    server.script.extend(StreamingResponse(endless(sent, b" " * (1 << 20))) for _ in range(RETRIES + 1))
    async with gateway(server, tmp_path) as model:
        with pytest.raises(ModelUnavailable, match="its reply is larger than 32 MiB"):
            await model.call(asked())
    assert len(server.calls) == RETRIES + 1


async def test_gateway_refuses_compressed_replies_and_asks_for_none(tmp_path: Path) -> None:
    server = ModelServer()
    bomb = gzip.compress(json.dumps(completion("x" * (4 << 20))).encode())
    server.script.extend([Response(bomb, headers={"Content-Encoding": "gzip"}, media_type="application/json")] * 4)
    async with gateway(server, tmp_path) as model:
        with pytest.raises(ModelUnavailable, match=r"its reply is compressed \(gzip\)"):
            await model.call(asked())
    assert {headers["accept-encoding"] for headers in server.headers} == {"identity"}


@pytest.mark.parametrize("window", ["many", 10**30, -1, 0, None, True, [4096]])
async def test_models_with_an_unusable_context_window_get_the_default(window: Any, tmp_path: Path) -> None:
    async with gateway(ModelServer(models=[{"id": "tiny", "max_model_len": window}]), tmp_path) as model:
        assert model.context_window == 8192


async def test_gateway_given_deeply_nested_json_retries(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(garbage("[" * 200_000))
    async with gateway(server, tmp_path) as model:
        assert (await model.call(asked()))["text"] == "fine"


async def test_gateway_given_odd_figures_returns_a_reply_with_warnings(tmp_path: Path) -> None:
    server = ModelServer()
    odd = completion("Yes")
    odd["usage"] = {"prompt_tokens": "seven", "completion_tokens": 10**30}
    odd["choices"][0]["logprobs"] = {"content": [{"token": "Yes", "logprob": None, "top_logprobs": None}]}
    server.script.append(odd)
    async with gateway(server, tmp_path) as model:
        reply = await model.call(asked(sampling=Sampling(top_logprobs=20)))
    assert (reply["text"], reply["logprobs"], reply["usage"]["prompt_tokens"]) == ("Yes", None, 0)
    assert [warning.split(":")[0] for warning in reply["warnings"]] == [
        "the model server sends unusable token counts",
        "the model server sends unusable log-probabilities",
    ]
