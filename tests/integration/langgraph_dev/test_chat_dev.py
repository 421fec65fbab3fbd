"""LangGraph's development server through its SDK: a chat, a kill in between, and docs/how-to/langgraph.md."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from chat_scene import BACK, PLAIN, archive, knowing, said, texts
from langgraph_sdk import get_client
from langgraph_sdk.client import LangGraphClient
from scripted_backend import Asked, Scripted
from serve_process import langgraph_dev
from serve_scene import QUESTION

from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.nightly

THREADS = Path(".langgraph_api") / ".langgraph_ops.pckl"
"""The file in which the server stores its list of threads every ten seconds."""


@pytest.fixture
async def environment(tmp_path: Path) -> AsyncIterator[dict[str, str]]:
    async with knowing(pause=0.01) as proxy:
        yield {**await archive(tmp_path), "SLEUTH_MODEL_URL": proxy.url}


async def converse(client: LangGraphClient) -> None:
    """Have a conversation with the SDK, as an application does."""
    thread = (await client.threads.create())["thread_id"]

    async def turn(text: str | None = None, **more: Any) -> Any:
        given = {"input": said(text)} if text else {}
        return await client.runs.wait(thread, "chat", **given, context=PLAIN, **more)

    assert texts(await turn("Hello!")) == ["Hello!", "Hello! What would you like to know?"]
    answered = await turn(QUESTION)
    last = answered["messages"][-1]
    assert last["type"] == "ai"
    assert last["content"].startswith("Edric Gannow [1]\n\n[1] The Pellowrig Light: “")
    about = last["additional_kwargs"]
    assert (about["status"], about["method"], len(about["citations"])) == ("answered", "plain-rag", 1)
    hop = await client.threads.get(about["thread"])
    assert hop["metadata"]["part_of"] == thread
    assert (await client.threads.get_state(about["thread"]))["values"]["verdict"]["text"] == "Edric Gannow"

    asked_back = await turn("Who built it?")
    assert [each["value"] for each in asked_back["__interrupt__"]] == [BACK]
    assert (await client.threads.get(thread))["status"] == "interrupted"
    replied = await turn(command={"resume": "the light"})
    assert texts(replied)[-3:] == ["Built what?", "the light", "Edric Gannow"]

    history = await client.threads.get_history(thread, limit=100)
    before = next(state for state in history if state["next"] == ["classify"])
    place = before["checkpoint"]["checkpoint_id"]
    changed = {"question": QUESTION, "kind": "question"}
    fork = await client.threads.update_state(thread, changed, as_node="classify", checkpoint_id=place)
    assert (await client.threads.get_state(thread))["next"] == ["plan"]
    forked = await turn(checkpoint=fork["checkpoint"])
    assert texts(forked)[-2:] == ["Who built it?", "Edric Gannow"], "not asked back this time"
    assert (await client.threads.get_history(thread, limit=100))[-len(history) :] == history
    failed = await client.runs.wait(thread, "chat", input=said(" "), context=PLAIN, raise_error=False)
    assert failed["__error__"]["message"] == "The question is empty."


async def test_sdk_client_has_a_conversation(environment: dict[str, str], tmp_path: Path) -> None:
    async with langgraph_dev(tmp_path, **environment) as server:
        client = get_client(url=server.url)
        (assistant,) = await client.assistants.search(graph_id="chat")
        schemas = await client.assistants.get_schemas(assistant["assistant_id"])
        for schema in (schemas["input_schema"], schemas["output_schema"]):
            assert {"human", "ai"} <= {kind["properties"]["type"].get("const") for kind in messages_in(schema)}
        shown = schemas["context_schema"]["properties"]
        assert {"auto", "par-rag"} <= set(shown["method"]["enum"])
        assert all(field["description"] for field in shown.values())
        await converse(client)
        alone = await client.runs.wait(None, "plain-rag", input={"question": QUESTION})
        assert alone["verdict"]["text"] == "Edric Gannow"
        assert not list((Path(environment["SLEUTH_HOME"]) / "locks").glob("*.json"))  # only while something runs
        log = server.log.read_text()
        assert "--allow-blocking" not in log  # the detector is on, or the server would warn that it is not
        assert "BlockingError" not in log
        assert "Blocking call" not in log


def messages_in(schema: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the schemas of the messages in the field `messages`, as Studio reads them to offer its chat view."""
    items = schema["properties"]["messages"]["items"]
    names = [one["$ref"].rpartition("/")[2] for one in items.get("oneOf") or items["anyOf"]]
    return [schema["$defs"][name] for name in names]


async def flushed(folder: Path) -> None:
    """Wait until the server has written its threads down once more."""

    def written() -> int:
        return (folder / THREADS).stat().st_mtime_ns if (folder / THREADS).exists() else 0

    before = written()
    async with asyncio.timeout(120):
        while written() == before:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.2)


async def test_kill_keeps_old_threads_and_young_checkpoints(environment: dict[str, str], tmp_path: Path) -> None:
    async with langgraph_dev(tmp_path, **environment) as server:
        sdk = get_client(url=server.url)
        old = (await sdk.threads.create())["thread_id"]
        await sdk.runs.wait(old, "chat", input=said("Hello!"), context=PLAIN)
        for _ in range(2):  # the first may have begun before
            await flushed(tmp_path)
        young = (await sdk.threads.create())["thread_id"]
        await sdk.runs.wait(young, "chat", input=said("Who built it?"), context=PLAIN)
        before = {thread: await sdk.threads.get_history(thread, limit=200) for thread in (old, young)}
        server.kill()
    async with langgraph_dev(tmp_path, **environment) as server:
        sdk = get_client(url=server.url)
        assert await sdk.threads.get_history(old, limit=200) == before[old]
        await sdk.threads.create(thread_id=young, graph_id="chat", if_exists="do_nothing")
        found = await sdk.threads.get_history(young, limit=200)
        assert [state["checkpoint"] for state in found] == [state["checkpoint"] for state in before[young]]
        assert [state["values"] for state in found] == [state["values"] for state in before[young]]
        resumed = await sdk.runs.wait(young, "chat", command={"resume": "the light"}, context=PLAIN)
        assert texts(resumed)[-1] == "Edric Gannow"
        greeting = (await sdk.threads.get_state(old))["values"]
        assert texts(greeting) == ["Hello!", "Hello! What would you like to know?"]


CORPUS = Path(__file__).parents[3] / "examples" / "corpus"
ARTICLES = ("pellowrig-light.md", "bastian-oake.md", "sennick-harbour.md", "upper-fennimer.md", "shearing-week.md")
FAIR = "Which fair is held in the birthplace of the builder of the Pellowrig Light?"
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


def misreading(asked: Asked) -> Any:
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


async def test_documented_debugging_session_works(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", embedder="none")
    await ingest([CORPUS / name for name in ARTICLES], settings=settings)
    home = {"SLEUTH_HOME": str(settings.home), "SLEUTH_EMBEDDER": "none"}
    async with (
        knowing(Scripted(misreading)) as proxy,
        langgraph_dev(tmp_path, SLEUTH_MODEL_URL=proxy.url, **home) as server,
    ):
        sdk = get_client(url=server.url)
        thread = (await sdk.threads.create())["thread_id"]
        wrong: Any = await sdk.runs.wait(thread, "par-rag", input={"question": FAIR})
        assert wrong["verdict"]["text"] == "Shearing Week"
        notes = [(note["question"], note["finding"]) for note in wrong["notes"].values()]
        assert notes[0] == ("Who built the Pellowrig Light?", "Sabra Quill")

        history = await sdk.threads.get_history(thread, limit=200)
        drafted: Any = next(state for state in reversed(history) if state["next"] == ["retrieve_fine"])
        assert drafted["values"]["drafts"]["1"]["answer"] == "Sabra Quill"

        right = {"drafts": {"1": {"answer": "Bastian Oake", "citations": []}}}
        place = drafted["checkpoint"]["checkpoint_id"]
        fork = await sdk.threads.update_state(thread, right, as_node="draft", checkpoint_id=place)
        better: Any = await sdk.runs.wait(thread, "par-rag", checkpoint=fork["checkpoint"])
        assert better["verdict"]["text"] == "Kelp Fair"
        quotes = [citation["quote"] for citation in better["verdict"]["citations"]]
        assert any("Kelp Fair" in quote for quote in quotes)
        assert (await sdk.threads.get_history(thread, limit=200))[-len(history) :] == history, "the old branch stays"
