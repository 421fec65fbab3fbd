"""Count the own frames and files of one model call: python -m benchmarks.call_frames.

A node of `closed-book` asks its role over HTTP. Listed are the functions of sleuth that are open while the HTTP client
waits for the reply: callers, tasks and context managers.
"""

import asyncio
import dis
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

import httpx2

from benchmarks.servers import free_port, serving, wait_until_up
from sleuth.agents.llm.client import LLMClient
from sleuth.graphs.baselines.closed_book import Settings as ClosedBook
from sleuth.graphs.core.context import Context
from sleuth.graphs.registry import METHODS
from sleuth.tools.settings import Settings
from sleuth.tools.storage.archive import MemoryArchive
from tests.support import standin

ROOT = Path(__file__).resolve().parents[1]
OWN = tuple(f"{ROOT / folder}/" for folder in ("agents", "graphs", "tools", "studio", "src", "prompts"))
HTTP = str(Path(httpx2.__file__).parent)
FIRST = "ModelCaller.ask_or"
"""The method that begins a model call."""


class OpenFrames:
    """The own functions that have begun and not ended, and the most of them while the HTTP client works."""

    def __init__(self) -> None:
        self.deepest: list[str] = []
        self._open: dict[FrameType, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Follow a call or a return; a suspended coroutine returns too, but is not at its end."""
        file, code = frame.f_code.co_filename, frame.f_code
        if event == "call" and file.startswith(HTTP):
            self._note()
        if not file.startswith(OWN):
            return
        if event == "call":
            self._open.setdefault(frame, f"{file.removeprefix(f'{ROOT}/src/sleuth/')}: {code.co_qualname}")
        elif event == "return" and dis.opname[code.co_code[frame.f_lasti]] != "YIELD_VALUE":
            self._open.pop(frame, None)

    def _note(self) -> None:
        names = [*self._open.values()]
        begun = next((at for at, name in enumerate(names) if name.endswith(f": {FIRST}")), len(names))
        if len(names) - begun > len(self.deepest):
            self.deepest = names[begun:]


async def ask(url: str, home: Path, frames: OpenFrames) -> None:
    """Ask a question of the method, with the profile on during the run."""
    async with LLMClient.open(Settings(model_url=url, home=home)) as model:
        context: Any = Context(model=model, retriever=None, archive=MemoryArchive(), settings=ClosedBook())  # type: ignore[arg-type]  # nothing is searched
        graph = METHODS["closed-book"].graph().compile()
        sys.setprofile(frames)
        try:
            await graph.ainvoke({"question": "How high is the tower?"}, context=context)
        finally:
            sys.setprofile(None)


def main() -> None:
    """Print the frames and their count."""
    frames, port = OpenFrames(), free_port()
    with serving(standin.serve, port, 0.0), tempfile.TemporaryDirectory() as home:
        wait_until_up(f"http://127.0.0.1:{port}/v1/models")
        asyncio.run(ask(f"http://127.0.0.1:{port}/v1", Path(home), frames))
    print("\n".join(frames.deepest))
    files = {name.partition(":")[0] for name in frames.deepest}
    print(f"{len(frames.deepest)} frames in {len(files)} files")


if __name__ == "__main__":
    main()
