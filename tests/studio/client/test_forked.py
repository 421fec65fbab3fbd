"""A handle in a process that was forked from the one that opened it."""

import subprocess
import sys

import pytest

from sleuth.tools.settings import Settings

OPEN = """
import asyncio, os, sys
import sleuth
from langchain_core.language_models.fake_chat_models import FakeListChatModel

settings, model = sleuth.Settings(home=sys.argv[1], embedder="none"), FakeListChatModel(responses=["x"])

def attempt(use):
    try:
        use()
    except sleuth.SleuthError as error:
        print(error)
"""
SYNC = """
with sleuth.sync.open(settings, model=model) as app:
    tool, retriever = app.as_tool(), app.as_retriever()
    uses = [lambda: app.search("q"), lambda: next(app.stream("q")), lambda: tool.invoke("q"),
            lambda: retriever.invoke("q"), app.as_tool]
    if child := os.fork():
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
        assert app.documents() == []
    else:
        for use in uses:
            attempt(use)
        sys.stdout.flush()
        app.documents()
"""
ASYNC = """
def run(use):
    try:
        use().send(None)  # a forked process has no event loop
    except StopIteration:
        pass

async def main():
    async with sleuth.open(settings, model=model) as app:
        node = app.as_subgraph("par-rag")
        uses = [lambda: app.ask("q"), lambda: app.stream("q").__anext__(), lambda: app.resume("t"),
                lambda: app.history("t"), lambda: app.fork("t", at="1"), lambda: app.documents(),
                lambda: app.search("q"), lambda: app.once("key", "q")]
        if child := os.fork():
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            assert await app.documents() == []
        else:
            for use in uses:
                attempt(lambda: run(use))
            attempt(lambda: app.context("par-rag"))
            attempt(lambda: node.invoke({"messages": []}))
            sys.stdout.flush()
            os._exit(0)

asyncio.run(main())
"""


@pytest.mark.parametrize(("script", "uses"), [(SYNC, 5), (ASYNC, 10)], ids=["sync", "async"])
def test_handle_cannot_be_used_after_a_fork(settings: Settings, script: str, uses: int) -> None:
    command = [sys.executable, "-c", OPEN + script, str(settings.home)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert len(lines) == uses, done
    assert all("which was forked from it. Call `sleuth.open` in the new process." in line for line in lines)
    assert ("sleuth.tools.errors.UsageError: This Sleuth was opened in process" in done.stderr) == (script == SYNC)
