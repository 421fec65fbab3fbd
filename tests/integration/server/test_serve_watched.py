"""Logs, metrics, traces and limits of the server."""

import asyncio
import json
import logging

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from serve_fixture import Serve
from serve_scene import ANNA, BEN, FILES, KEYS, QUESTION, begin, told, upload

from sleuth.studio.server.telemetry.logs import JsonLines

pytestmark = pytest.mark.integration


async def test_every_response_has_its_request_id(client: httpx.AsyncClient) -> None:
    named = await client.get("/v1/methods", headers={"X-Request-ID": "mine-1"})
    assert named.headers["X-Request-ID"] == "mine-1"
    odd = await client.get("/nothing", headers={"X-Request-ID": "no good\t"})
    assert odd.status_code == 404
    assert len(odd.headers["X-Request-ID"]) == 32


async def test_log_contains_names_and_numbers_but_no_texts(serving: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "sleuth")
    async with serving(keys=KEYS) as client:
        await upload(client, headers=ANNA)
        thread = await begin(client, headers=ANNA)
        await told(client, thread, headers=ANNA)
        await client.get("/v1/search", params={"q": QUESTION}, headers=ANNA)
    lines = [json.loads(JsonLines().format(record)) for record in caplog.records]
    [run] = [line for line in lines if line["message"] == "run ended"]
    assert (run["thread"], run["outcome"], run["calls"], run["owner"]) == (thread, "done", 1, "anna")
    assert {line["route"] for line in lines if line["message"] == "request"} >= {
        "/v1/runs/{thread}/events",
        "/v1/search",
    }
    written = json.dumps(lines)
    assert not [text for text in [*FILES.values(), QUESTION, "Gannow", "apple-secret"] if text in written]


@pytest.mark.parametrize("stream", [False, True])
async def test_completion_closed_after_its_answer_counts_as_done(client: httpx.AsyncClient, stream: bool) -> None:
    await upload(client)
    asked = {"model": "plain-rag", "messages": [{"role": "user", "content": QUESTION}], "stream": stream}
    assert (await client.post("/v1/chat/completions", json=asked)).status_code == 200
    async with asyncio.timeout(300):
        while "sleuth_runs_active 0.0" not in (found := (await client.get("/metrics")).text):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert 'sleuth_run_seconds_count{method="plain-rag",outcome="done"} 1.0' in found


def spans_in_memory() -> InMemorySpanExporter:
    """Return an exporter of the application's provider, which sleuth uses instead of its own."""
    kept = InMemorySpanExporter()
    provider = trace.get_tracer_provider()  # a process has one for good
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    provider.add_span_processor(SimpleSpanProcessor(kept))
    return kept


async def test_trace_contains_a_subrun_once_below_its_node(serving: Serve) -> None:
    kept = spans_in_memory()
    async with serving(tracing="otel") as client:
        await upload(client)
        asked = {"question": QUESTION, "method": "auto", "values": {"order": "plain-rag"}}
        begun = await client.post("/v1/runs", json=asked)
        await told(client, begun.json()["thread"])
    spans = kept.get_finished_spans()
    assert {"POST /v1/runs", "retrieve", "answer"} <= {span.name for span in spans}
    (outer,) = (span for span in spans if span.name == "run auto")
    (inner,) = (span for span in spans if span.name == "run plain-rag")
    nodes = {id_of(span): span for span in spans if (span.attributes or {}).get("sleuth.node")}
    assert inner.parent
    assert (inner.attributes or {})["sleuth.status"] == "answered"
    node = nodes[inner.parent.span_id]
    assert node.parent and node.parent.span_id == id_of(outer)
    assert len([span for span in spans if span.name == "retrieval"]) == 1


def id_of(span: ReadableSpan) -> int:
    return span.context.span_id if span.context else 0


async def test_requests_beyond_the_rate_limit_are_refused_per_owner(serving: Serve) -> None:
    async with serving(keys=KEYS, requests_a_minute=3) as client:
        replies = [await client.get("/v1/runs", headers=ANNA) for _ in range(4)]
        assert [reply.status_code for reply in replies] == [200, 200, 200, 429]
        assert 1 <= int(replies[-1].headers["Retry-After"]) <= 20
        assert replies[-1].json()["error"]["code"] == "rate_limit_exceeded"
        assert (await client.get("/v1/runs", headers=BEN)).status_code == 200


async def test_runs_beyond_the_daily_quota_are_refused_per_owner(serving: Serve) -> None:
    async with serving(keys=KEYS, tokens_a_day=50) as client:
        for key in (ANNA, BEN):
            await upload(client, headers=key)
        thread = await begin(client, headers=ANNA)
        assert (await told(client, thread, headers=ANNA))[-1][1] == "answer", "a run that goes on is not cut off"
        refused = await client.post("/v1/runs", json={"question": QUESTION}, headers=ANNA)
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "insufficient_quota")
        assert (await client.post(f"/v1/runs/{thread}/resume", headers=ANNA)).status_code == 429
        await begin(client, headers=BEN)
