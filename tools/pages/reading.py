"""Pages read in a process of their own, so that one that takes too long or too much memory can be given up."""

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

from sleuth.tools.pages.page import Page, PageText, distinct, named_apart

PAGE_SECONDS = 20.0
PAGE_MEGABYTES = 2048
MAX_HTML = 20 << 20
"""Characters of HTML that are looked at."""
MAX_PAGES = 100
_LONGEST_REPLY = 32 << 20


async def read_pages(
    pages: Sequence[Page], *, seconds: float = PAGE_SECONDS, megabytes: int = PAGE_MEGABYTES
) -> list[PageText]:
    """What can be read out of pages, each content once, in order; a page that had to be given up says so.

    Args:
        pages: at most MAX_PAGES; more are left out, and the last one says so.
        seconds: the time that one page may take.
        megabytes: the memory that reading may take (on Linux).
    """
    wanted = distinct(pages)
    reader = Reader(seconds=seconds, megabytes=megabytes)
    try:
        read = [await reader.read(page) for page in wanted[:MAX_PAGES]]
    finally:
        await reader.stop()
    if len(wanted) > MAX_PAGES:
        left_out = f"{len(wanted) - MAX_PAGES} further pages were left out: {MAX_PAGES} are read for one question"
        read[-1] = replace(read[-1], warnings=(*read[-1].warnings, left_out))
    ids = named_apart([page.id for page in read])
    return [replace(page, id=id) for page, id in zip(read, ids, strict=True)]


@dataclass
class Reader:
    """One process at a time; a new one after it has ended or was ended. `seconds` are what the next page may take."""

    seconds: float
    megabytes: int
    process: Process | None = None

    async def read(self, page: Page) -> PageText:
        """What was read of a page in time, or nothing but a warning."""
        if len(page.html) > MAX_HTML:
            cut = f"only the first {MAX_HTML:,} of {len(page.html):,} characters were looked at"
            page = replace(page, html=page.html[:MAX_HTML], warnings=(*page.warnings, cut))
        try:
            async with asyncio.timeout(self.seconds):
                reply = await self._ask(page)
        except TimeoutError:
            reply, why = b"", f"it took longer than {self.seconds:g} s"
        else:
            why = f"it took more than {self.megabytes:,} MB, or cannot be parsed"
        if reply:
            return PageText.from_json(reply.decode())
        await self.stop()
        return _given_up(page, why)

    async def _ask(self, page: Page) -> bytes:
        process = self.process or await self._start()
        assert process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps(asdict(page)).encode() + b"\n")
            await process.stdin.drain()
            return await process.stdout.readline()
        except (ConnectionError, ValueError):  # it has ended, or its reply has no end
            return b""

    async def _start(self) -> Process:
        # -P: no module is loaded from the folder that somebody happens to work in.
        command = [sys.executable, "-P", "-m", "sleuth.tools.pages.worker", str(self.megabytes)]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        self.process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=_LONGEST_REPLY, env=environment
        )
        return self.process

    async def stop(self) -> None:
        """Ends the process; no page is lost by it that was read."""
        if self.process is None:
            return
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        self.process = None


def _given_up(page: Page, why: str) -> PageText:
    """A page of which only the snippet is known."""
    from sleuth.tools.pages.extract import describe
    from sleuth.tools.text import normalise, one_line, title_from

    name = title_from(normalise(page.name)) or title_from(page.url) or "Page without a name"
    text = one_line(normalise(page.snippet))
    stands = "its snippet stands for it" if text else "nothing of it is there"
    return describe(page, name, text, [], [f"was given up, because {why}: {stands}"])
