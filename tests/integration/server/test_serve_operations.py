"""Health checks, metrics, logs, traces, limits and wrong keys, as an operator uses them."""

import asyncio
import json
import logging
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from postgres_fixture import PostgresServer
from scripted_backend import Scripted, proxying
from serve_scene import ANNA, BEN, FILES, KEYS, QUESTION, Serve, begin, told, upload

from sleuth.studio.server.telemetry import readiness
from sleuth.studio.server.telemetry.logs import Lines
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.home import RESTORING
from sleuth.tools.storage import disk

NOWHERE = "http://127.0.0.1:9/v1"


async def test_health_checks_need_no_key_and_show_details_with_one(serving: Serve) -> None:
    async with serving(keys=KEYS, model_url=NOWHERE) as client:
        assert (await client.get("/livez")).json()["status"] == "ok"
        reply = await client.get("/readyz")
        assert (reply.status_code, reply.json()) == (200, {"status": "degraded"})
        checks = (await client.get("/readyz", headers=ANNA)).json()["checks"]
        assert checks["database"] == checks["home"] == "ok"
        assert "connection" in checks["model"].lower()


async def test_server_with_a_model_is_ready(serving: Serve) -> None:
    async with proxying(Scripted(lambda _asked: "")) as proxy, serving(model_url=proxy.url) as client:
        reply = (await client.get("/readyz")).json()
        assert reply == {"status": "ok", "checks": {"database": "ok", "home": "ok", "model": "ok"}}


async def test_server_with_a_full_disk_is_not_ready(serving: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as client:
        monkeypatch.setattr(disk, "_FULL", 1 << 62)
        reply = await client.get("/readyz")
        assert (reply.status_code, reply.json()["status"]) == (503, "unavailable")
        assert reply.json()["checks"]["home"].startswith("The disk is full.")


@pytest.mark.postgres
async def test_server_without_its_stores_is_alive_and_not_ready(
    serving: Serve, own_postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "FRESH", 0.0)
    async with serving(database_url=own_postgres.url, chroma_url="http://127.0.0.1:9") as client:
        checks = (await client.get("/readyz")).json()["checks"]
        assert (checks["database"], checks["home"]) == ("ok", "ok")
        assert checks["chroma"] != "ok"
        own_postgres.stop()
        await asyncio.to_thread((tmp_path / "home" / RESTORING).touch)
        reply = await client.get("/readyz")
        assert (reply.status_code, reply.json()["status"]) == (503, "unavailable")
        assert all(problem != "ok" for problem in reply.json()["checks"].values())
        assert (await client.get("/livez")).status_code == 200
        own_postgres.start()


async def test_metrics_show_answers_calls_errors_and_uploads(serving: Serve, oracle: object) -> None:
    async with serving(filled=True) as client:
        await told(client, await begin(client))
        oracle.said = lambda _request: ModelUnavailable("It is down.")  # type: ignore[attr-defined]
        await told(client, await begin(client))
        found = (await client.get("/metrics")).text
    for line in (
        'sleuth_request_seconds_count{method="POST",route="/v1/runs",status="201"} 2.0',
        'sleuth_run_seconds_count{method="plain-rag",outcome="done"} 1.0',
        'sleuth_model_calls_total{method="plain-rag"} 1.0',
        "sleuth_runs_active 0.0",
        'sleuth_answers_total{method="plain-rag",status="answered"} 1.0',
        'sleuth_run_seconds_count{method="plain-rag",outcome="failed"} 1.0',
        'sleuth_run_errors_total{error="ModelUnavailable",method="plain-rag"} 1.0',
        'sleuth_model_call_seconds_count{model="scripted",role="reader"} 1.0',
        'sleuth_ingest_seconds_count{status="done"} 1.0',
        'sleuth_ingested_files_total{outcome="read"} 3.0',
        "sleuth_ingests_waiting 0.0",
        'sleuth_owner_runs_total{method="plain-rag",outcome="done",owner="local"} 1.0',
    ):
        assert line in found, found


async def test_metrics_of_owners_are_for_the_operator(serving: Serve) -> None:
    async with serving(keys=KEYS, operator="ben") as client:
        await upload(client, headers=ANNA)
        assert "anna" not in (await client.get("/metrics", headers=ANNA)).text
        assert 'sleuth_owner_requests_total{owner="anna"}' in (await client.get("/metrics", headers=BEN)).text


async def test_operator_lists_runs_of_other_owners(serving: Serve) -> None:
    async with serving(keys=KEYS, operator="ben") as client:
        await upload(client, headers=ANNA)
        await told(client, thread := await begin(client, headers=ANNA), headers=ANNA)
        asked = {"params": {"owner": "anna"}}
        [run] = (await client.get("/v1/runs", headers=BEN, **asked)).json()
        assert (run["id"], run["owner"], run["outcome"]) == (thread, "anna", "answered")
        assert (await client.get("/v1/owners", headers=BEN)).json() == ["ben", "anna"]
        assert (await client.get("/v1/runs", headers=BEN)).json() == []
        assert (await client.get(f"/v1/runs/{thread}", headers=BEN)).status_code == 404
        assert (await client.get("/v1/runs", headers=BEN, params={"owner": "carl"})).status_code == 400
        assert (await client.get("/v1/owners", headers=ANNA)).json() == ["anna"]
        refused = await client.get("/v1/runs", headers=ANNA, params={"owner": "ben"})
        assert refused.status_code == 400
        assert "Only the operator" in refused.text


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
    lines = [json.loads(Lines("json").format(record)) for record in caplog.records]
    [run] = [line for line in lines if line["message"] == "run ended"]
    assert (run["thread"], run["outcome"], run["calls"], run["owner"]) == (thread, "done", 1, "anna")
    assert {line["route"] for line in lines if line["message"] == "request"} >= {
        "/v1/runs/{thread}/events",
        "/v1/search",
    }
    written = json.dumps(lines)
    assert not [text for text in [*FILES.values(), QUESTION, "Gannow", "apple-secret"] if text in written]


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
    async with serving(tracing="otel", filled=True) as client:
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
        assert 1 <= int(replies[-1].headers["Retry-After"]) <= 60
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
