"""Requests and faults of the model client, with whole and with streamed replies."""

import asyncio
import gzip
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from blockbuster import blockbuster_ctx
from model_server import (
    EVERYTHING,
    LIMIT,
    ModelServer,
    Recorder,
    Spoken,
    chunks,
    completion,
    connected,
    cut,
    forever,
    garbage,
    hang,
    request,
    serving,
    status,
    truncated,
)
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse

from sleuth import prompts
from sleuth.agents.llm.client import ESTIMATED, LLMClient
from sleuth.agents.llm.completions import STREAMED
from sleuth.agents.model import Sampling
from sleuth.agents.model_calls.output_parsing import parse
from sleuth.studio.client.sleuth import open_sleuth
from sleuth.tools.errors import ContextTooLong, ModelError, ModelTimeout, ModelUnavailable, UnknownName, UsageError
from sleuth.tools.http import MAX_REPLY_BYTES, RETRIES
from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}
YES_OR_NO = ("yes", "no")
SCORED = Sampling(top_logprobs=20)


async def test_call_sends_the_request_and_returns_the_reply(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(completion("In the <b>east</b>.", finish="length"))
    async with connected(server, tmp_path, model_key="secret") as model:
        reply = await model.call(request(sampling=Sampling(max_tokens=9, seed=5, temperature=0.5), schema=SCHEMA))
    (body,), (headers,) = server.calls, server.headers
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Where is Varn?"},
    ]
    assert (body["model"], body["max_tokens"], body["seed"], body["temperature"]) == ("plain", 9, 5, 0.5)
    assert body["response_format"]["json_schema"]["schema"] == SCHEMA
    assert (headers["x-sleuth-call"], headers["authorization"]) == ("call-1", "Bearer secret")
    assert (reply["text"], reply["finish"], reply["model"]) == ("In the <b>east</b>.", "length", "plain")
    assert reply["usage"] == {"prompt_tokens": 7, "cached_tokens": 4, "completion_tokens": 3}
    assert (reply["logprobs"], reply["warnings"]) == (None, [])


async def test_soft_token_precedes_the_first_user_message(tmp_path: Path) -> None:
    server = ModelServer()
    async with connected(server, tmp_path) as model:
        await model.call(request(soft_token="AAAA"))
    assert server.calls[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {
            "role": "user",
            "content": [{"type": "prompt_embeds", "data": "AAAA"}, {"type": "text", "text": "Where is Varn?"}],
        },
    ]


BEGUN = chunks(completion("In the far east."))[:3]
WHOLE_FAULTS = {
    "500": status(500),
    "503": status(503),
    "429": status(429),
    "garbage": garbage("{not json"),
    "truncated": truncated(),
    "no choices": {**completion(), "choices": []},
    "error": {"error": {"message": "oh"}},
}
STREAM_FAULTS = {
    "cut": Spoken(BEGUN, cut),
    "ended early": Spoken(BEGUN),
    "error event": Spoken([*BEGUN, {"error": {"message": "busy", "code": 503}}]),
    "half an event": garbage(f"data: {BEGUN[1]}\n\n", "text/event-stream"),
    "503 before the stream": status(503),
}


@pytest.mark.parametrize("name", [*WHOLE_FAULTS, *STREAM_FAULTS])
async def test_call_after_a_transient_fault_is_retried_with_its_id(name: str, tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.append((WHOLE_FAULTS | STREAM_FAULTS)[name])
    streamed = name in STREAM_FAULTS
    async with connected(server, tmp_path) as model:
        assert (await model.call(request(listener=recorder if streamed else None)))["text"] == "fine"
    assert [headers["x-sleuth-call"] for headers in server.headers] == ["call-1", "call-1"]
    assert recorder.texts in ([["fine"], ["!", "fine"], ["In ", "the ", "!", "fine"]] if streamed else [[]])


async def test_call_waits_for_retry_after(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(status(429, headers={"Retry-After": "1"}))
    async with connected(server, tmp_path) as model:
        started = time.monotonic()
        await model.call(request())
        assert time.monotonic() - started >= 1


VLLM = "This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens"
ALIEN = "`prompt_embeds` hidden_size 32 does not match the model's hidden_size 576."
NO_ADAPTER = r"cannot take the token of this graph model: .* 576\. .*Serve the language model that it was tuned with"
LASTING: dict[str, tuple[Any, type[Exception], str]] = {
    "500": (status(500, "out of memory"), ModelUnavailable, "fails with status 500: out of memory"),
    "429": (status(429), ModelUnavailable, "overloaded .*SLEUTH_CONCURRENCY"),
    "cut stream": (Spoken(BEGUN, cut), ModelUnavailable, "closed the connection during its reply"),
    "ended stream": (Spoken(BEGUN), ModelUnavailable, "after retries: its stream ends before"),
    "stream error": (Spoken([{"error": {"message": "out of memory"}}]), ModelUnavailable, "status 500: out of"),
}
REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "vllm": (status(400, VLLM), ContextTooLong, "maximum context length"),
    "400": (status(400, "temperature must be positive"), ModelError, "status 400: .*temperature must be positive"),
    "embedding": (status(400, ALIEN), ModelError, NO_ADAPTER),
    "401": (status(401), ModelError, "refuses the key .*SLEUTH_MODEL_KEY"),
    "404": (status(404, "Unexpected endpoint"), ModelError, "404: Unexpected endpoint.*SLEUTH_MODEL_URL lacks its /v1"),
    "long stream": (Spoken([{"error": {"message": VLLM, "code": 400}}]), ContextTooLong, "too long"),
}


FIRST, *OTHERS = LASTING


@pytest.mark.parametrize("name", [FIRST, *REFUSED, *(pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS)])
async def test_call_with_a_lasting_fault_raises_its_error(name: str, tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    fault, kind, message = (LASTING | REFUSED)[name]
    server.script.extend([fault] * 9)
    streamed = isinstance(fault, Spoken)
    async with connected(server, tmp_path) as model:
        with pytest.raises(kind, match=message) as raised:
            await model.call(request(listener=recorder if streamed else None))
    assert type(raised.value) is kind
    refusals = 3 if name == "400" else 1  # also without what it names, and without all helps
    assert len(server.calls) == (RETRIES + 1 if name in LASTING else refusals)
    assert recorder.texts[-1:] == (["!"] if streamed else [])


async def test_a_404_of_a_model_that_the_server_no_longer_lists_names_the_others(tmp_path: Path) -> None:
    server = ModelServer()
    async with connected(server, tmp_path) as model:
        server.models = [{"id": "plainer"}]
        server.script.append(status(404, "No such model"))
        with pytest.raises(UnknownName, match=r"no model 'plain'\. Did you mean plainer.* The server has: plainer"):
            await model.call(request())


async def test_named_model_of_a_server_without_a_list_is_used(tmp_path: Path) -> None:
    server = ModelServer(models=None)  # type: ignore[arg-type]  # what such a server has instead of a list
    async with connected(server, tmp_path, model="plain") as model:
        assert (await model.call(request()))["text"] == "fine"
        server.script.append(status(404, "No such model."))
        with pytest.raises(ModelError, match=r"status 404: No such model\. Check SLEUTH_MODEL, and"):
            await model.call(request())
    with pytest.raises(UsageError, match="lack its /v1"):
        async with connected(server, tmp_path):
            pass


SILENT = Spoken(BEGUN, forever)


@pytest.mark.parametrize(("script", "texts"), [(hang, []), (SILENT, ["In ", "the ", "!"])], ids=["first", "midway"])
async def test_call_of_a_server_that_hangs_times_out(script: Any, texts: list[str], tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.append(script)
    async with connected(server, tmp_path, timeout=3) as model:
        with pytest.raises(ModelTimeout, match=r"no reply within 3 s: see SLEUTH_TIMEOUT"):
            await model.call(request(listener=recorder))
        await asyncio.wait_for(server.gone.wait(), LIMIT)
    assert recorder.texts == texts


@pytest.mark.parametrize("script", [hang, SILENT], ids=["first", "midway"])
async def test_cancelled_call_closes_the_request_and_frees_its_slot(script: Any, tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.append(script)
    async with connected(server, tmp_path, concurrency=1) as model:
        task = asyncio.create_task(model.call(request(listener=recorder)))
        await asyncio.wait_for(server.begun.wait(), LIMIT)
        if script is SILENT:
            await recorder.received("In the ")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.gone.wait(), LIMIT)
        assert (await model.call(request(call_id="call-2")))["text"] == "fine"


TWO = [{"id": "small", "max_model_len": 2048}, {"id": "large"}]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"model_url": "http://127.0.0.1:9/v1"},
            ModelUnavailable,
            "No model server answers at http.*`sleuth model ser",
        ),
        ({"model_url": "localhost:8000"}, UsageError, "must begin with http"),
        ({"model_url": "URL"}, UsageError, "lack its /v1"),
        ({"model_url": "URL/v2"}, UsageError, "lack its /v1"),
        ({}, UsageError, r"several models or none \(large, small\): choose one with SLEUTH_MODEL"),
        ({"model": "larg"}, UnknownName, r"no model 'larg'\. Did you mean large"),
        ({"model": "small", "models": {"planner": "larg"}}, UnknownName, r"no model 'larg'\. Did you mean large"),
        ({"model": "small", "models": {"plannr": "small"}}, UnknownName, r"no role 'plannr'\. Did you mean planner"),
    ],
    ids=["nobody", "no url", "root", "other path", "two models", "unknown", "unknown of a role", "unknown role"],
)
async def test_open_with_unusable_settings_raises(
    options: dict[str, Any], kind: type[Exception], message: str, tmp_path: Path
) -> None:
    async with serving(ModelServer(models=TWO)) as server:
        url = options.get("model_url", "URL/v1").replace("URL", server.url.removesuffix("/v1"))
        with pytest.raises(kind, match=message):
            async with LLMClient.open(Settings(home=tmp_path, **options | {"model_url": url})):
                pass


async def test_each_role_has_its_model_and_the_smallest_context_counts(tmp_path: Path) -> None:
    server = ModelServer(models=TWO)
    async with connected(server, tmp_path, model="large", models={"planner": "small"}) as model:
        await model.call(request(role="planner"))
        await model.call(request(role="drafter"))
        assert model.context_window == 2048
    assert [body["model"] for body in server.calls] == ["small", "large"]


@pytest.mark.parametrize("record", [None, "{"], ids=["none", "broken"])
async def test_server_without_a_usable_record_is_probed_once(record: str | None, tmp_path: Path) -> None:
    server = ModelServer()
    async with serving(server):
        if record:
            (tmp_path / "capabilities.json").write_text(record)
        for _ in range(2):
            async with LLMClient.open(Settings(model_url=server.url, home=tmp_path)) as model:
                await model.call(request(schema=SCHEMA))
    assert server.probes == 4


@pytest.mark.parametrize(
    ("missing", "options", "field", "end", "warning"),
    [
        ("schema", {"schema": SCHEMA}, "response_format", f"schema:\n{json.dumps(SCHEMA)}", "JSON schemas"),
        ("choice", {"choices": YES_OR_NO}, "structured_outputs", "one of: yes, no", "choices"),
        ("logprobs", {"sampling": SCORED}, "logprobs", "Where is Varn?", "no log-probabilities"),
    ],
    ids=["schema", "choice", "logprobs"],
)
async def test_call_without_a_capability_uses_a_fallback_and_warns(
    missing: str, options: dict[str, Any], *, field: str, end: str, warning: str, tmp_path: Path
) -> None:
    server = ModelServer(supports=EVERYTHING - {missing})
    async with connected(server, tmp_path) as model:
        reply = await model.call(request(**options))
        assert model.context_window == 4096 - (512 if missing == "schema" else 0)
    (body,) = server.calls
    assert field not in body
    assert body["messages"][-1]["content"].endswith(end)
    assert len(reply["warnings"]) == 1 and warning in reply["warnings"][0]
    assert reply["logprobs"] is None


@pytest.mark.parametrize(
    ("reason", "options", "lacking"),
    [
        ("Grammar error: regex parse error: ^(?:4", {"schema": SCHEMA}, ["response_format"]),
        ("response_format is not supported", {"schema": SCHEMA}, ["response_format"]),
        ("Unknown parameter: structured_outputs", {"choices": YES_OR_NO}, ["structured_outputs"]),
        ("logprobs are not supported with this model", {"sampling": SCORED}, ["logprobs", "top_logprobs"]),
        ("Unsupported value: 'temperature' does not support 0", {}, ["temperature"]),
        ("extra fields not permitted: seed", {"schema": SCHEMA}, ["seed"]),
        ("Bad Request", {"choices": YES_OR_NO}, ["structured_outputs", "seed", "temperature"]),
    ],
)
async def test_call_refused_for_a_part_of_it_is_sent_without_that_from_then_on(
    reason: str, options: dict[str, Any], lacking: list[str], tmp_path: Path
) -> None:
    server = ModelServer()
    server.script += (
        [status(400, reason), status(422, reason)] if "response_format" in lacking else [status(400, reason)]
    )
    async with connected(server, tmp_path) as model:
        reply = await model.call(request(**options))
        await model.call(request(**options))
    refused, *_, sent, later = server.calls
    assert refused.keys() - sent.keys() == set(lacking)
    assert later == sent
    assert any("was asked again without" in warning for warning in reply["warnings"])


async def test_call_that_is_refused_in_every_form_gives_the_first_reason(tmp_path: Path) -> None:
    server = ModelServer()
    server.script += [status(400, "the seed is wrong"), status(400, "no"), status(400, "never")]
    async with connected(server, tmp_path) as model:
        with pytest.raises(ModelError, match="status 400: the seed is wrong"):
            await model.call(request())
        await model.call(request())
    assert server.calls[-1]["seed"] == server.calls[0]["seed"], "what did not help is not remembered"


async def test_count_tokens_without_a_tokenizer_is_an_upper_estimate(tmp_path: Path) -> None:
    async with connected(ModelServer(), tmp_path / "a") as model:
        assert await model.count_tokens(request().messages, role="drafter") == 5
    async with connected(ModelServer(supports=EVERYTHING - {"tokenize"}), tmp_path / "b") as model:
        assert await model.count_tokens(request().messages, role="drafter") > 20


async def test_client_does_not_block_the_event_loop(tmp_path: Path) -> None:
    prompts._all.cache_clear()  # as in a fresh process
    server = ModelServer(supports=frozenset())
    async with serving(server):
        settings = Settings(model_url=server.url, home=tmp_path)
        with blockbuster_ctx("sleuth"):
            async with LLMClient.open(settings) as model:
                await model.call(request(schema=SCHEMA))
                await model.call(request(choices=YES_OR_NO))
                await model.count_tokens(request().messages, role="drafter")
    assert len(server.calls) == 2


async def test_model_that_thinks_gets_additional_tokens(tmp_path: Path) -> None:
    server = ModelServer(thinks=True)
    server.script.append(completion("<think>{maybe}</think>Yes", reasoning_content="hm"))
    server.script.append(completion(None, finish="length", reasoning_content="so much to think about"))
    async with connected(server, tmp_path) as model:
        reply = await model.call(request(sampling=Sampling(max_tokens=8)))
        assert model.context_window == 4096 - 2048
        assert (await model.call(request()))["text"] == ""
    assert server.calls[0]["max_tokens"] == 8 + 2048
    assert parse(reply["text"], str) == "Yes"


async def endless(sent: list[int], piece: bytes) -> AsyncIterator[bytes]:
    """Far more than a reply may have; counts what is sent."""
    for _ in range(16 * MAX_REPLY_BYTES // len(piece)):
        sent[0] += len(piece)
        yield piece
        await asyncio.sleep(0)


@pytest.mark.parametrize("media_type", ["application/json", "text/event-stream"])
@pytest.mark.parametrize("code", [200, 400])
async def test_call_given_an_endless_reply_stops_reading_it(media_type: str, code: int, tmp_path: Path) -> None:
    server, sent = ModelServer(), [0]
    pieces = endless(sent, b"data: " + b"x" * (1 << 20))
    server.script.append(StreamingResponse(pieces, code, media_type=media_type))
    async with connected(server, tmp_path) as model:
        assert (await model.call(request()))["text"] == "fine"
    assert MAX_REPLY_BYTES < sent[0] < 4 * MAX_REPLY_BYTES


async def test_call_requests_no_compressed_replies_and_refuses_them(tmp_path: Path) -> None:
    server = ModelServer()
    bomb = gzip.compress(json.dumps(completion("x" * (4 << 20))).encode())
    server.script.extend([Response(bomb, headers={"Content-Encoding": "gzip"}, media_type="application/json")] * 4)
    async with connected(server, tmp_path) as model:
        with pytest.raises(ModelUnavailable, match=r"its reply is compressed \(gzip\)"):
            await model.call(request())
    assert {headers["accept-encoding"] for headers in server.headers} == {"identity"}


FAR = completion("In the far east.")
TOKENS = [{"token": token, "logprob": -0.5, "top_logprobs": []} for token in ("In ", "the ", "far ", "east.", "<end>")]
SCORED_REPLY = {**FAR, "choices": [FAR["choices"][0] | {"logprobs": {"content": TOKENS}, "finish_reason": "length"}]}


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"schema": {"type": "object"}},
        {"choices": ("yes", "no")},
    ],
    ids=["plain", "schema", "choices"],
)
async def test_streamed_reply_equals_the_whole_one(options: dict[str, Any], tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.extend([FAR] * 2)
    async with connected(server, tmp_path) as model:
        streamed = await model.call(request(listener=recorder, **options))
        whole = await model.call(request(**options))
    assert {**streamed, "seconds": 0} == {**whole, "seconds": 0}
    assert streamed["usage"] == {"prompt_tokens": 7, "cached_tokens": 4, "completion_tokens": 3}
    assert recorder.texts == ["In ", "the ", "far ", "east."]
    first, second = server.calls
    assert first == {**second, **STREAMED}, "the requests differ in nothing else"


async def test_tokens_are_received_before_the_reply_has_ended(tmp_path: Path) -> None:
    server, recorder, go = ModelServer(), Recorder(), asyncio.Event()
    server.script.append(Spoken(chunks(FAR), go.wait))
    async with connected(server, tmp_path) as model:
        task = asyncio.create_task(model.call(request(listener=recorder)))
        await recorder.received("In the far east.")
        assert not task.done()
        go.set()
        assert (await task)["text"] == "In the far east."


async def test_whole_reply_to_a_stream_request_is_accepted(tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    async with connected(server, tmp_path) as model:
        server.supports = EVERYTHING - {"stream"}
        assert (await model.call(request(listener=recorder)))["text"] == "fine"
    assert recorder.texts == ["fine"]


async def test_reply_with_log_probabilities_is_not_streamed(tmp_path: Path) -> None:
    server, recorder = ModelServer(), Recorder()
    server.script.append(SCORED_REPLY)
    async with connected(server, tmp_path) as model:
        reply = await model.call(request(listener=recorder, sampling=Sampling(max_tokens=5, top_logprobs=20)))
    assert [each["token"] for each in reply["logprobs"] or []] == [each["token"] for each in TOKENS]
    assert not server.calls[0]["stream"]


class Odd(ModelServer):
    """Server behind a relay that changes the content type of streams, and drops their usage."""

    def spoken(self, reply: Spoken) -> AsyncIterator[str]:
        return super().spoken(Spoken(reply.chunks[:-1], reply.then))

    async def replied(self, reply: dict[str, Any], request: HttpRequest) -> Response:
        response = await super().replied(reply, request)
        response.headers["content-type"] = "application/json"
        return response


async def test_stream_without_usage_or_content_type_is_read(tmp_path: Path) -> None:
    recorder = Recorder()
    async with connected(Odd(), tmp_path) as model:
        reply = await model.call(request(listener=recorder))
    assert (reply["text"], recorder.texts, reply["warnings"]) == ("fine", ["fine"], [ESTIMATED])


async def test_key_that_a_server_quotes_is_in_no_message(tmp_path: Path) -> None:
    server = ModelServer()
    server.script.append(status(402, "The key sk-hunter2 has no credit"))
    async with connected(server, tmp_path, model_key="sk-hunter2") as model:
        with pytest.raises(ModelError, match=r"The key \*\*\* has no credit") as raised:
            await model.call(request())
    assert "hunter2" not in str(raised.value)


DENIAL = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"
SEVERAL = b'HTTP/1.1 200 OK\r\nContent-Length: 36\r\nConnection: close\r\n\r\n{"data": [{"id": "a"}, {"id": "b"}]}'


@pytest.mark.parametrize(
    ("answers", "default"),
    [("refuses", "reader"), ("is silent", "reader"), (DENIAL, "auto"), (SEVERAL, "auto")],
    ids=["refuses", "silent", "denies", "several"],
)
async def test_documents_are_searched_without_a_model_server(
    tmp_path: Path, answers: str | bytes, default: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sleuth.agents.llm.endpoint.LIST_SECONDS", 1.0)

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(answers, str):
            await asyncio.Event().wait()
        else:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(answers)
            await writer.drain()
            writer.close()

    server = await asyncio.start_server(reply, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    if answers == "refuses":
        server.close()
    settings = Settings(home=tmp_path / "home", embedder="none", model_url=url)
    (tmp_path / "bell.txt").write_text("The harbour bell was cast in 1871.")
    await ingest([tmp_path / "bell.txt"], settings=settings)
    async with open_sleuth(settings) as sleuth:
        (hit,) = await sleuth.search("harbour bell")
        assert hit.passage.text == "The harbour bell was cast in 1871."
        assert sleuth.model_problem
        assert sleuth.default_method == default
        assert (await sleuth.ask("When was the harbour bell cast?", method="reader")).text == "1871"
        with pytest.raises(type(sleuth.model_problem)):
            await sleuth.ask("When was the harbour bell cast?", method="plain-rag")
    server.close()
