"""OpenTelemetry spans in a collector, and the trace of a request in the model server."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from otlp_collector import Collector, collecting
from process import SLEUTH, free_port
from scripted_backend import Proxy, Scripted, proxying
from serve_process import sleuth_serve
from serve_scene import FILES, LIGHT, QUESTION, READING, upload

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{CALLER}-01"
ASK = ("ask", QUESTION, "--method", "plain-rag", "--set", "mode=keyword", "--set", "check_evidence=false")


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying(Scripted(lambda _: READING)) as running:
        yield running


@pytest.fixture
async def collector() -> AsyncIterator[Collector]:
    async with collecting() as running:
        yield running


@pytest.fixture
def environment(tmp_path: Path, proxy: Proxy, collector: Collector) -> dict[str, str]:
    return {
        "SLEUTH_HOME": str(tmp_path / "home"),
        "SLEUTH_EMBEDDER": "none",
        "SLEUTH_MODEL_URL": proxy.url,
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
    }


async def sleuth(*arguments: str, **environment: str) -> tuple[str, str]:
    """Run a command to its end in a process of its own; return what it wrote."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SLEUTH_", "OTEL_"))}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *SLEUTH, *arguments, env=kept | environment, stdout=pipe, stderr=pipe
    )
    out, err = ((part.decode()) for part in await process.communicate())
    assert process.returncode == 0, err
    return out, err


async def ingested(folder: Path, environment: dict[str, str]) -> None:
    (folder / "papers").mkdir()
    for name, text in FILES.items():
        (folder / "papers" / name).write_text(text)
    await sleuth("ingest", str(folder / "papers"), **environment)


@pytest.mark.nightly
async def test_command_exports_its_run_without_texts(
    tmp_path: Path, environment: dict[str, str], collector: Collector, proxy: Proxy
) -> None:
    await ingested(tmp_path, environment)
    assert collector.requests == []
    await sleuth(*ASK, "--thread", "first", SLEUTH_TRACING="otel", **environment)
    assert {path for path, _ in collector.requests} == {"/v1/traces"}
    assert {span.service for span in collector.spans} == {"sleuth"}
    run, call, search = (collector.named(name) for name in ("run plain-rag", "chat scripted", "retrieval"))
    assert (run.parent, call.parent, search.parent) == (
        "",
        collector.named("answer").id,
        collector.named("retrieve").id,
    )
    assert {span.trace for span in collector.spans} == {run.trace}
    assert run.attributes["gen_ai.conversation.id"] == "first"
    assert call.attributes["server.port"] == int(proxy.url.removesuffix("/v1").rpartition(":")[2])
    assert [sent.trace for sent in proxy.calls] == [f"00-{call.trace}-{call.id}-{proxy.calls[0].trace[-2:]}"]
    posted = b"".join(body for _, body in collector.requests)
    assert not [text for text in (QUESTION, LIGHT, "Gannow") if text.encode() in posted]


@pytest.mark.nightly
async def test_answer_does_not_depend_on_the_collector(tmp_path: Path, environment: dict[str, str]) -> None:
    await ingested(tmp_path, environment)
    environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{free_port()}"
    began = time.monotonic()
    out, err = await sleuth(*ASK, SLEUTH_TRACING="otel", **environment)
    assert "Edric Gannow" in out
    assert "Traceback" not in err
    assert time.monotonic() - began < 60


async def asked(client: httpx.AsyncClient, **headers: str) -> None:
    body = {"question": QUESTION, "method": "plain-rag", "values": {"mode": "keyword", "check_evidence": False}}
    begun = await client.post("/v1/runs", json=body, headers=headers)
    assert begun.status_code == 201, begun.text
    assert "event: answer" in (await client.get(f"/v1/runs/{begun.json()['thread']}/events")).text


@pytest.mark.nightly
async def test_server_continues_a_trace_and_exports_texts_on_request(
    tmp_path: Path, environment: dict[str, str], collector: Collector, proxy: Proxy
) -> None:
    environment |= {"SLEUTH_TRACING": "otel", "SLEUTH_TRACE_TEXTS": "true", "OTEL_SERVICE_NAME": "mine"}
    async with (
        sleuth_serve(tmp_path, **environment) as served,
        httpx.AsyncClient(base_url=served.url, timeout=120, trust_env=False) as client,
    ):
        await upload(client)
        await asked(client, traceparent=TRACEPARENT)
    request, run, call = (collector.named(name) for name in ("POST /v1/runs", "run plain-rag", "chat scripted"))
    assert {request.trace, run.trace, call.trace} == {TRACE}
    assert (request.parent, run.parent) == (CALLER, request.id)
    assert (request.attributes["http.route"], request.attributes["sleuth.owner"]) == ("/v1/runs", "local")
    assert [sent.trace for sent in proxy.calls] == [f"00-{TRACE}-{call.id}-01"]
    assert {span.service for span in collector.spans} == {"mine"}
    said = call.attributes
    assert QUESTION in said["gen_ai.input.messages"] and "Edric Gannow" in said["gen_ai.output.messages"]
    assert collector.named("retrieval").attributes["gen_ai.retrieval.query.text"] == QUESTION


async def test_nothing_is_exported_by_default(
    tmp_path: Path, environment: dict[str, str], collector: Collector, proxy: Proxy
) -> None:
    """The variables of OpenTelemetry and LangSmith alone start nothing; the trace is still passed on."""
    environment |= {
        "OTEL_TRACES_EXPORTER": "otlp",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{collector.url}/v1/traces",
        "LANGSMITH_TRACING": "true",
        "LANGSMITH_ENDPOINT": collector.url,
        "LANGSMITH_API_KEY": "lsv2_pt_0123456789",
        "LANGSMITH_OTEL_ENABLED": "true",
    }
    await ingested(tmp_path, environment)
    await sleuth(*ASK, **environment)
    async with (
        sleuth_serve(tmp_path, **environment) as served,
        httpx.AsyncClient(base_url=served.url, timeout=120, trust_env=False) as client,
    ):
        await asked(client, traceparent=TRACEPARENT)
    assert collector.requests == []
    assert [sent.trace for sent in proxy.calls] == ["", TRACEPARENT]
