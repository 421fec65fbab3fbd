"""The session of docs/tutorials/debug-in-studio.md: a wrong answer, its cause, a fork, the right answer."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_scene import knowing
from dev_server import langgraph_dev
from langgraph_sdk import get_sync_client
from scripted_backend import Asked, Scripted

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.settings import Settings

CORPUS = Path(__file__).parents[3] / "examples" / "corpus"
ARTICLES = ("pellowrig-light.md", "bastian-oake.md", "sennick-harbour.md", "upper-fennimer.md", "shearing-week.md")
QUESTION = "Which fair is held in the birthplace of the builder of the Pellowrig Light?"
STEPS = [
    {"question": "Who built the Pellowrig Light?", "needs": []},
    {"question": "Where was the builder born?", "needs": [1]},
    {"question": "Which fair is held there?", "needs": [2]},
]
FOUND = {
    "Who built the Pellowrig Light?": "Sabra Quill",  # she lived in it
    "Where was Sabra Quill born?": "Upper Fennimer",
    "Which fair is held in Upper Fennimer?": "Shearing Week",
    "Where was Bastian Oake born?": "Sennick Harbour",
    "Which fair is held in Sennick Harbour?": "Kelp Fair",
}


def script(asked: Asked) -> Any:
    """Reply as a model that misreads one passage, is right otherwise, and accepts every draft."""
    latest = asked.after("   Answer: ")
    match asked.prompt:
        case "planner/plan":
            return STEPS
        case "refiner/refine":
            planned = asked.after("Question to rewrite: ")
            return {"question": planned.replace("the builder", latest).replace("held there", f"held in {latest}")}
        case "drafter/draft":
            found = FOUND[asked.after("Question: ")]
            return {"answer": found, "citations": [{"source": 1, "quote": found}]}
        case "reviewer/review":
            return {"status": "PASS"}
    assert asked.prompt == "answerer/answer"
    return {"known": True, "answer": latest}


@pytest.mark.nightly
async def test_documented_debugging_session_works(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder="none")
    await ingest([CORPUS / name for name in ARTICLES], settings=settings)
    async with knowing(Scripted(script)) as proxy:
        home = {"SLEUTH_HOME": str(settings.home), "SLEUTH_EMBEDDER": "none", "SLEUTH_MODEL_URL": proxy.url}
        await asyncio.to_thread(session, tmp_path, home)


def session(folder: Path, environment: dict[str, str]) -> None:
    with langgraph_dev(folder, **environment) as server, get_sync_client(url=server.url) as sdk:
        thread = sdk.threads.create()["thread_id"]
        wrong: Any = sdk.runs.wait(thread, "par-rag", input={"question": QUESTION})
        assert wrong["verdict"]["text"] == "Shearing Week"
        notes = [(note["question"], note["finding"]) for note in wrong["notes"].values()]
        assert notes[0] == ("Who built the Pellowrig Light?", "Sabra Quill")

        history = sdk.threads.get_history(thread, limit=200)
        drafted: Any = next(state for state in reversed(history) if state["next"] == ["retrieve_fine"])
        assert drafted["values"]["drafts"]["1"]["answer"] == "Sabra Quill"

        right = {"drafts": {"1": {"answer": "Bastian Oake", "citations": []}}}
        place = drafted["checkpoint"]["checkpoint_id"]
        fork = sdk.threads.update_state(thread, right, as_node="draft", checkpoint_id=place)["checkpoint"]
        better: Any = sdk.runs.wait(thread, "par-rag", checkpoint=fork)
        assert better["verdict"]["text"] == "Kelp Fair"
        quotes = [citation["quote"] for citation in better["verdict"]["citations"]]
        assert any("Kelp Fair" in quote for quote in quotes)
        assert sdk.threads.get_history(thread, limit=200)[-len(history) :] == history, "the old branch stays"
