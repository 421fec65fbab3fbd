"""A clock that is set back between two processes: runs resume, chats continue, and no completed call is sent again."""

import asyncio
import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import kill as kills
import pytest
from chat_scene import archive, knowing
from folders import PYTHONPATH
from four_hops import QUESTION, four_hops
from hashing_embedder import HashingEmbedder
from process import program
from recording_proxy import Sent, proxying
from run_child import Job
from scripted_backend import Scripted
from serve_scene import FILES

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

CLOCK_SOURCE = """
#define _GNUCLOCK_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME && !result) now->tv_sec -= atol(getenv("SECONDS_BEHIND"));
    return result;
}
"""

COMMAND = "from sleuth.studio.cli.app import main; main()"
CHILD = """
import pickle, sys
from types import SimpleNamespace
from run_child import run

def send(value):
    if isinstance(value, dict):
        pickle.dump(value, sys.stdout.buffer)

run(pickle.load(sys.stdin.buffer), SimpleNamespace(send=send))
"""


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that sets the clock of a process back if it is loaded before libc."""
    compiler = program("There is no C compiler: apt-get install gcc libc6-dev", "cc")
    folder = tmp_path_factory.mktemp("clock")
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(CLOCK_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def behind(library: Path, seconds: int) -> dict[str, str]:
    """Return the environment of a process whose clock is a number of seconds behind."""
    return {"LD_PRELOAD": str(library), "SECONDS_BEHIND": str(seconds)} if seconds else {}


async def python(code: str, *arguments: str, given: bytes = b"", **environment: str) -> tuple[int, bytes]:
    """Runs Python code in a new process; returns its status and output."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": PYTHONPATH, **environment},
    )
    output, _ = await process.communicate(given)
    return int(process.returncode or 0), output


async def run(job: Job, **environment: str) -> dict[str, Any] | None:
    """Run a job to its end, or until it kills itself."""
    status, output = await python(CHILD, given=pickle.dumps(job), **environment)
    if status == -signal.SIGKILL:
        return None
    assert status == 0
    answer: dict[str, Any] = pickle.loads(output)["answer"]
    return answer


@pytest.mark.nightly
async def test_killed_run_resumes_with_clocks_that_are_behind(
    tmp_path: Path, database_url: str | None, clock_library: Path
) -> None:
    collection = uuid4().hex
    settings = Settings(home=tmp_path / "home", embedder="hashing", database_url=database_url, collection=collection)
    for name, text in FILES.items():
        await asyncio.to_thread((tmp_path / name).write_text, text)
    await ingest([tmp_path / name for name in FILES], settings=settings, embedder=HashingEmbedder())
    async with proxying(Scripted(four_hops)) as proxy:
        asking = settings.model_copy(update={"model_url": proxy.url})
        whole = Job(settings=asking, method="par-rag", question=QUESTION, thread=uuid4().hex)
        expected = kills.essence(await run(whole))
        job, completed = replace(whole, thread=uuid4().hex), set[str]()
        for seconds in (0, 3_600, 20):
            start = len(proxy.calls)
            assert await run(replace(job, die_after=10), **behind(clock_library, seconds)) is None
            await proxy.settle()
            assert not completed & asked(proxy.calls[start:]), "a call that had completed was sent again"
            done = kills.committed(settings, set(proxy.ids(start)))
            completed |= asked([sent for sent in proxy.calls[start:] if sent.call in done])
            assert completed
        start = len(proxy.calls)
        assert kills.essence(await run(job, **behind(clock_library, 3_600))) == expected
        assert not completed & asked(proxy.calls[start:]), "a call that had completed was sent again"


def asked(calls: Sequence[Sent]) -> set[str]:
    """The words of calls: their ids differ where they are sent from different checkpoints."""
    return {json.dumps(json.loads(sent.body)["messages"]) for sent in calls}


@pytest.mark.nightly
async def test_chat_continues_with_a_clock_that_is_behind(tmp_path: Path, clock_library: Path) -> None:
    async with knowing() as proxy:
        own = {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}
        for seconds, message in ((0, "Hello!"), (600, "Hello!"), (0, "Who built it?")):
            chat = ("ask", message, "--method", "chat", "--thread", "talk", "--set", "method=plain-rag", "--json")
            status, output = await python(COMMAND, *chat, **own, **behind(clock_library, seconds))
            assert status == 0
        assert json.loads(output)["text"] == "Built what?"
