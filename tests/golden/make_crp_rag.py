"""Makes a SLEUTH_HOME with CRP-RAG runs whose nodes were `plan`, `retrieve`, `aggregate`, `verify` and `answer`.

`PYTHONPATH=tests:tests/graphs/support python tests/golden/make_crp_rag.py FILE.zip`, with the last release that has
these nodes. One run has ended, and one was stopped at each place where a run can wait for `plan` or `answer`.
"""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from make import QUESTION, YARD, Shelf, pack
from scenes import Replying, sure

from sleuth.agents.model import Request
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.service import RunService, Services
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.settings import Settings

FIRST, SECOND = "Which yard built the Lady Morrable?", f"In which year was {YARD} founded?"
FOUND = {FIRST: YARD, SECOND: "1868", QUESTION: "1868"}
GRAPH = {"shortcut": False, "samples": 1}

STOPPED: dict[str, tuple[dict[str, Any], str, int]] = {
    "first-plan": (GRAPH, "expander/expand", 1),
    "second-plan": (GRAPH, "expander/expand", 2),
    "plan-after-shortcut": ({"samples": 1}, "expander/expand", 1),
    "answer": (GRAPH, "integrator/last_step", 1),
    "answer-of-shortcut": ({"samples": 1}, "integrator/step", 1),
    "done": (GRAPH, "", 0),
}
"""Each run's settings, the prompt whose call fails, and which of its calls that is."""


def replies(run: str, *, failing: bool) -> Replying:
    """A model that knows the answers; in a run that fails, the server fails at its place."""
    _, prompt, last = STOPPED[run]
    seen: list[str] = []

    def reply_to(request: Request) -> Any:
        seen.append(request.prompt)
        if failing and seen.count(prompt) == last:
            return ModelUnavailable("The model server is down.")
        given = request.input
        match request.role:
            case "expander":
                return {"step": SECOND, "final": True} if given["steps"] else {"step": FIRST, "final": False}
            case "aggregator":
                found = FOUND[given["step"]]
                source = 1 if found == YARD else 2
                return {"knowledge": f"It is {found}.", "citations": [{"source": source, "quote": found}]}
            case "verifier":
                unsure = given["question"] == QUESTION and run == "plan-after-shortcut"
                return sure("Nobody knows.", 40.0) if unsure else sure(FOUND[given["question"]])
        return {"answer": FOUND[given["step"]]}

    return Replying(reply_to)


async def make(home: Path) -> None:
    """Make the runs."""
    async with open_store(Settings(home=home, embedder="hashing")) as store:
        for name, (values, prompt, _) in STOPPED.items():
            runs = RunService(store, Services(model=replies(name, failing=bool(prompt)), retriever=Shelf()))
            await runs.start(QUESTION, "crp-rag", values=values, thread=name)
            try:
                async for _ in runs.run(name):
                    pass
            except ModelUnavailable:
                continue
            assert not prompt, f"{name} was to be interrupted"


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(make(Path(folder) / "home"))
        pack(Path(folder) / "home", Path(sys.argv[1]))
