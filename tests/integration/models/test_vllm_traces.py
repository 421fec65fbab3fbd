"""A trace from a command of sleuth to vLLM, whose spans are exported to the same collector."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from otlp_collector import Collector, collecting
from process import free_port

from sleuth.studio.model_server.convert import Checkpoint, ensure_checkpoint
from sleuth.studio.model_server.flags import ServeOptions, serve_command, serve_environment

pytestmark = [pytest.mark.integration, pytest.mark.vllm, pytest.mark.usefixtures("vllm_installed")]

SLEUTH = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()"]
QUESTION = "Who built the Pellowrig Light?"
STARTS = 300
"""Seconds that the server has to start."""


@contextmanager
def vllm(checkpoint: Path, collector: Collector, log: Path) -> Iterator[str]:
    """Run vLLM with its own export of spans while the block is open."""
    options = ServeOptions(port=free_port(), dtype="float32", threads=1)
    command = [*serve_command(options, checkpoint), "--otlp-traces-endpoint", f"{collector.url}/v1/traces"]
    named = {"OTEL_SERVICE_NAME": "vllm", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
    environment = {**os.environ, **serve_environment(options), **named}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield f"http://127.0.0.1:{options.port}"
    finally:
        process.terminate()
        process.wait(120)


async def answers(url: str) -> None:
    async with asyncio.timeout(STARTS), httpx.AsyncClient(trust_env=False) as client:
        while True:
            try:
                if (await client.get(f"{url}/health")).is_success:
                    return
            except httpx.TransportError:
                await asyncio.sleep(0.5)


async def sleuth(*arguments: str, **environment: str) -> None:
    process = await asyncio.create_subprocess_exec(*SLEUTH, *arguments, env=os.environ | environment)
    assert await process.wait() == 0


@pytest.mark.nightly
async def test_span_of_vllm_is_below_that_of_the_model_call(model_home: Path) -> None:
    (model_home / "light.md").write_text("# Light\n\nThe Pellowrig Light was built by Edric Gannow in 1903.\n")
    checkpoint = await ensure_checkpoint(model_home, Checkpoint("tiny"))
    with collecting() as collector:
        with vllm(checkpoint, collector, model_home / "vllm.log") as url:
            await answers(url)
            own = {"SLEUTH_HOME": str(model_home), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": f"{url}/v1"}
            await sleuth("ingest", str(model_home / "light.md"), **own)
            ask = ("ask", QUESTION, "--method", "plain-rag", "--set", "mode=keyword", "--max-calls", "1")
            traced = {"SLEUTH_TRACING": "otel", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
            await sleuth(*ask, **own, **traced)
        (call,) = (span for span in collector.spans if span.name.startswith("chat "))
        (there,) = (span for span in collector.spans if span.service == "vllm" and span.trace == call.trace)
    assert (there.name, there.parent) == ("llm_request", call.id)
    assert there.attributes["gen_ai.usage.prompt_tokens"] == call.attributes["gen_ai.usage.input_tokens"]
