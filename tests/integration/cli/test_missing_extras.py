"""Missing extras: the message names the extra, and all other commands work."""

from pathlib import Path

import pytest
from cli_process import sleuth
from four_hops import QUESTION, four_hops
from scripted_backend import Scripted, proxying

OPTIONAL = [
    *("mcp", "fastapi", "uvicorn", "python_multipart", "prometheus_client"),
    *("opentelemetry.sdk", "opentelemetry.exporter"),
    *("psycopg", "psycopg_pool", "langgraph.checkpoint.postgres", "lightgbm", "peft"),
    *("torch_geometric", "ray"),
    *("langgraph_cli", "langgraph_api", "vllm"),
    *("torch", "sentence_transformers", "transformers", "langchain_community"),
]
POSTGRES = {"SLEUTH_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("command", "without", "extra"),
    [
        ("mcp", "mcp", "mcp"),
        ("serve", "fastapi", "serve"),
        ("serve", "uvicorn", "serve"),
        ("serve", "python_multipart", "serve"),
        ("serve", "prometheus_client", "serve"),
        ("serve", "mcp", "serve"),
        ("serve", "opentelemetry.exporter", "otel"),
        ("ask What?", "opentelemetry.sdk", "otel"),
        ("runs list", "psycopg", "postgres"),
        ("ingest .", "langchain_community", "loaders"),
        ("ingest . --ray 127.0.0.1:1", "ray", "ray"),
    ],
)
async def test_missing_extra_is_named_in_one_line(tmp_path: Path, command: str, without: str, extra: str) -> None:
    own = {"SLEUTH_HOME": str(tmp_path), "SLEUTH_EMBEDDER": "none"} | (
        POSTGRES if extra not in ("loaders", "ray", "otel") else {}
    )
    own |= {"SLEUTH_TRACING": "otel"} if extra == "otel" else {}
    own |= {"SLEUTH_LOADERS": '{".srt": "SRTLoader"}'} if extra == "loaders" else {}
    done = await sleuth(*command.split(), without=[without], **own)
    assert (done.status, done.out) in ((1, ""), (2, "")), done.err
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert f"pip install 'sleuth-rag[{extra}]'" in done.err
    assert without in done.err


@pytest.mark.nightly
async def test_base_embeds_searches_and_answers_without_torch(tmp_path: Path) -> None:
    (tmp_path / "light.md").write_text("# The light\n\nThe Brindle Light was built by Oda Marsh.\n")
    own = {"SLEUTH_HOME": str(tmp_path / "home")}
    read = await sleuth("ingest", str(tmp_path / "light.md"), without=OPTIONAL, **own)
    assert read.status == 0 and "1 added" in read.out, read.err
    found = await sleuth("search", "Who erected the beacon?", "--mode", "dense", without=OPTIONAL, **own)
    assert found.status == 0 and "Oda Marsh" in found.out, found.err
    for command in ("methods", "runs list"):
        assert (await sleuth(*command.split(), without=OPTIONAL, **own)).status == 0
    async with proxying(Scripted(four_hops)) as proxy:
        asked = await sleuth(
            "ask", QUESTION, "--method", "par-rag", "--json", without=OPTIONAL, SLEUTH_MODEL_URL=proxy.url, **own
        )
    assert asked.status == 0, asked.err
    assert asked.json()["text"] == "the fair at Brindlecote"


async def test_model_that_only_torch_computes_names_the_extra(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# The light\n\nIt was built by Oda.\n")
    (tmp_path / "model").mkdir()
    own = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_EMBEDDER": str(tmp_path / "model")}
    done = await sleuth("ingest", str(tmp_path / "a.md"), without=OPTIONAL, **own)
    assert done.status == 1
    assert "pip install 'sleuth-rag[torch]'" in done.err and "Traceback" not in done.err
