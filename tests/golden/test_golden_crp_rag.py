"""CRP-RAG runs of a release whose nodes were `plan` and `answer` are shown, forked and resumed by this one."""

from typing import Any

import pytest
from make import QUESTION, YARD, Shelf, unpack
from scenes import Replying, finish, sure

from sleuth.agents.model import Request
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.runs.history import fork_run, list_checkpoints, replay_steps
from sleuth.graphs.runs.service import RunService
from sleuth.tools.settings import Settings

FIRST, SECOND = "Which yard built the Lady Morrable?", f"In which year was {YARD} founded?"
FOUND = {FIRST: YARD, SECOND: "1868", QUESTION: "1868"}
LAYER, KNOW = ["expand", "merge"], ["retrieve", "aggregate", "verify"]
ANSWER = ["select_paths", "reason", "integrate"]
DONE = ["plan", "plan", *KNOW, "answer"]

RESUMED = {
    "first-plan": ["plan", "try_shortcut", *LAYER, *LAYER, *KNOW, *ANSWER],
    "second-plan": ["plan", "plan", *LAYER, *KNOW, *ANSWER],
    "plan-after-shortcut": ["plan", *KNOW, "plan", *LAYER, *LAYER, *KNOW, *ANSWER],
    "answer": [*DONE, *ANSWER],
    "answer-of-shortcut": ["plan", *KNOW, "answer", *ANSWER],
}
"""All nodes of each run: those of the old release, the one at which it was stopped, and those of this release."""


@pytest.fixture
def home(settings: Settings) -> Settings:
    return unpack("crp-rag-1.zip", settings)


def service(store: Store, run: str) -> RunService:
    """Return runs with a model that knows the answers."""

    def reply_to(request: Request) -> Any:
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

    return RunService(store, Services(model=Replying(reply_to), retriever=Shelf()))


async def visited(runs: RunService, run: str) -> list[str]:
    return [step.node for step in await replay_steps(runs, run)]


@pytest.mark.parametrize("run", RESUMED)
async def test_run_stopped_at_a_former_node_resumes(home: Settings, run: str) -> None:
    async with open_store(home) as store:
        runs = service(store, run)
        answer = await finish(runs, run)
        assert (answer.status, answer.text) == ("answered", "1868")
        assert answer.citations[-1]["quote"] == "1868"
        assert await visited(runs, run) == RESUMED[run]


async def test_former_nodes_of_a_finished_run_are_shown(home: Settings) -> None:
    async with open_store(home) as store:
        runs = service(store, "done")
        moments = [(moment.node, moment.next) for moment in reversed(await list_checkpoints(runs, "done"))]
        assert await visited(runs, "done") == DONE
        assert (await finish(runs, "done")).cost["nodes"].keys() == {"plan", "aggregate", "verify", "answer"}
    assert moments[1:] == [
        ([], ["plan"]),
        *(([a], [b] if b else []) for a, b in zip(DONE, [*DONE[1:], ""], strict=True)),
    ]


@pytest.mark.parametrize("at", range(1, 8))
async def test_checkpoint_with_former_nodes_can_be_forked(home: Settings, at: int) -> None:
    async with open_store(home) as store:
        runs = service(store, "done")
        moments = [*reversed(await list_checkpoints(runs, "done"))]
        assert moments[0].next == ["__start__"]
        await fork_run(runs, "done", at=moments[at].checkpoint, changes={"notes": {}})
        answer = await finish(runs, "done")
        assert (answer.status, answer.text, answer.question) == ("answered", "1868", QUESTION)
        assert (await visited(runs, "done"))[: at - 1] == DONE[: at - 1]
