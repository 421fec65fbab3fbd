"""A key is sent to the server that it is for, and is nowhere else: in no checkpoint, export, report, log or message."""

import asyncio
import json
from pathlib import Path

import pytest
from cli_process import Done, sleuth
from four_hops import QUESTION, four_hops
from scripted_backend import Scripted, proxying

EXAMPLES = Path(__file__).parents[3] / "examples"
SECRETS = {
    "SLEUTH_MODEL_KEY": "sk-Gx7-of-the-model",
    "SLEUTH_API_KEYS": "anna:Qv3-of-anna",
}
PARTS = ("Gx7-of-the-model", "Qv3-of-anna", "Zw9-of-the-url")


@pytest.mark.nightly
async def test_no_file_and_no_log_line_contains_a_secret(tmp_path: Path) -> None:
    home, report, export = tmp_path / "home", tmp_path / "report", tmp_path / "run.json"
    by_words = ("--set", "coarse_mode=keyword", "--set", "fine_mode=keyword")
    questions = str(EXAMPLES / "questions.jsonl")
    async with proxying(Scripted(four_hops, slower=0.0)) as proxy:
        env = {"SLEUTH_HOME": str(home), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": proxy.url, **SECRETS}
        done: list[Done] = [
            await sleuth("ingest", str(EXAMPLES / "corpus"), **env),
            await sleuth("ask", QUESTION, "--method", "par-rag", "--thread", "one", *by_words, "--json", **env),
            await sleuth("runs", "show", "one", "--json", **env),
            await sleuth("runs", "history", "one", "--json", **env),
            await sleuth("runs", "export", "one", **env),
            await sleuth("eval", questions, "--retrieval", "keyword", "--limit", "2", "--out", str(report), **env),
            await sleuth("doctor", **env),
            await sleuth("ask", QUESTION, **{**env, "SLEUTH_MODEL_URL": "http://user:Zw9-of-the-url@127.0.0.1:9/v1"}),
            await sleuth("ask", QUESTION, **{**env, "SLEUTH_MODEL_URL": "http://127.0.0.1:9/v1"}),
            await sleuth(
                "ask", QUESTION, "--method", "par-rag", **{**env, "SLEUTH_MODEL_URL": "http://127.0.0.1:9/v1"}
            ),
            await sleuth(
                "runs", "list", **{**env, "SLEUTH_DATABASE_URL": "postgresql://u:Zw9-of-the-url@127.0.0.1:9/x"}
            ),
        ]
        assert [each.status for each in done[:6]] == [0] * 6, done
        assert [bool(each.status) for each in done[-4:]] == [True, False, True, True]
        assert all(each.err for each in done[-4:])
        assert len(proxy.calls) > 5
    export.write_text(done[4].out)
    assert json.loads(done[1].out)["status"] == "answered"
    assert (report / "report.json").is_file()
    told = "".join(each.out + each.err for each in done)
    assert not [part for part in PARTS if part in told]
    files = await asyncio.to_thread(lambda: [path for path in tmp_path.rglob("*") if path.is_file()])
    assert [(path, part) for path in files for part in PARTS if part.encode() in path.read_bytes()] == []
