"""LangGraph's SDK against the routes under /langgraph: assistants, threads, runs, streams, interrupts and branches."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from chat_scene import APPROVED, BACK, PLAIN, client_at, said, talking, texts
from langgraph_sdk.client import LangGraphClient
from langgraph_sdk.errors import APIStatusError, ConflictError, NotFoundError
from serve_scene import KEYS, QUESTION, Oracle

GREETING = ["Hello!", "Hello! What would you like to know?"]
ANSWERED = [QUESTION, "Edric Gannow"]


@pytest.fixture
async def url(tmp_path: Path, oracle: Oracle) -> AsyncIterator[str]:
    async with talking(tmp_path, oracle) as found:
        yield found


@pytest.fixture
def sdk(url: str) -> LangGraphClient:
    return client_at(url)


async def new_thread(sdk: LangGraphClient) -> str:
    return str((await sdk.threads.create())["thread_id"])


async def turn(sdk: LangGraphClient, thread: str, text: str, **more: Any) -> Any:
    return await sdk.runs.wait(thread, "chat", input=said(text), context=more.pop("context", PLAIN), **more)


async def parts_of(stream: AsyncIterator[Any]) -> list[Any]:
    return [part async for part in stream]


@pytest.mark.nightly
async def test_sdk_lists_and_describes_assistants(sdk: LangGraphClient) -> None:
    first, *others = await sdk.assistants.search(limit=50)
    assert first["graph_id"] == "chat"
    assert {"par-rag", "auto"} <= {each["graph_id"] for each in others}
    assert await sdk.assistants.get("chat") == first == await sdk.assistants.get(first["assistant_id"])
    assert await sdk.assistants.search(graph_id="chat") == [first]
    with pytest.raises(APIStatusError, match="does not support the field metadata"):
        await sdk.assistants.search(metadata={"created_by": "system"})
    with pytest.raises(NotFoundError, match="There is no assistant 'chatt'"):
        await sdk.assistants.get("chatt")
    with pytest.raises(APIStatusError, match="does not support /assistants"):
        await sdk.assistants.create("chat")


async def test_sdk_has_a_conversation(sdk: LangGraphClient) -> None:
    thread = await new_thread(sdk)
    assert (await sdk.threads.get(thread))["values"] is None
    assert texts(await turn(sdk, thread, "Hello!")) == GREETING
    answered = await turn(sdk, thread, QUESTION)
    assert texts(answered) == [*GREETING, *ANSWERED]
    reply = answered["messages"][-1]
    assert reply["content"].startswith("Edric Gannow [1]\n\n[1] The Pellowrig Light: “")
    assert [cited["quote"] for cited in reply["additional_kwargs"]["citations"]] == ["built by Edric Gannow"]
    assert reply["usage_metadata"]["total_tokens"] > 0
    hop = await sdk.threads.get(reply["additional_kwargs"]["thread"])
    assert (hop["metadata"]["part_of"], hop["metadata"]["graph_id"]) == (thread, "plain-rag")

    (found,) = await sdk.threads.search(metadata={"graph_id": "chat"}, limit=100)
    assert (found["thread_id"], found["status"], texts(found["values"])) == (thread, "idle", [*GREETING, *ANSWERED])
    assert (await sdk.threads.get_state(thread))["next"] == []
    assert await sdk.threads.search(status="interrupted") == []
    await sdk.threads.update(thread, metadata={"title": "The light"})
    assert (await sdk.threads.search(metadata={"title": "The light"}))[0]["thread_id"] == thread
    await sdk.threads.delete(thread)
    with pytest.raises(NotFoundError):
        await sdk.threads.get(thread)


async def test_interrupts_are_answered_with_a_command(sdk: LangGraphClient) -> None:
    thread = await new_thread(sdk)
    asked_back = await turn(sdk, thread, "Who built it?")
    assert [each["value"] for each in asked_back["__interrupt__"]] == [BACK]
    waiting = await sdk.threads.get(thread)
    assert (waiting["status"], len(waiting["interrupts"])) == ("interrupted", 1)
    replied = await sdk.runs.wait(thread, "chat", command={"resume": "the light"})
    assert texts(replied) == ["Who built it?", "Built what?", "the light", "Edric Gannow"]

    shown = await turn(sdk, thread, QUESTION, context=APPROVED)
    (action,) = shown["__interrupt__"][0]["value"]["action_requests"]
    assert [step["question"] for step in action["args"]["steps"]] == [QUESTION]
    steps = {"steps": [{"question": "Who is the builder of the Pellowrig Light?"}]}
    decision = {"decisions": [{"type": "edit", "edited_action": {"name": action["name"], "args": steps}}]}
    done = await sdk.runs.wait(thread, "chat", command={"resume": decision})
    assert texts(done)[-2:] == ANSWERED
    hop = await sdk.threads.get_state(done["messages"][-1]["additional_kwargs"]["thread"])
    assert [step["question"] for step in hop["values"]["plan"].values()] == [steps["steps"][0]["question"]]
    with pytest.raises(httpx.HTTPStatusError) as refused:
        await sdk.runs.wait(thread, "chat", command={"resume": "Well?"})
    assert "does not wait for a reply" in refused.value.response.text


@pytest.mark.nightly
async def test_edited_message_branches_the_thread(sdk: LangGraphClient) -> None:
    """As agent-chat-ui edits: the new message starts at the parent of the first state that has the old one."""
    thread = await new_thread(sdk)
    await turn(sdk, thread, "Hello!")
    await turn(sdk, thread, QUESTION)
    history = await sdk.threads.get_history(thread, limit=100)
    for number, kept in ((2, GREETING), (0, [])):
        old = history[0]["values"]["messages"][number]["id"]
        first = [state for state in history if old in [each["id"] for each in state["values"].get("messages", [])]][-1]
        parent = {"checkpoint_id": first["parent_checkpoint"]["checkpoint_id"], "checkpoint_ns": ""}
        branched = await turn(sdk, thread, "And who built the light?", checkpoint=parent)
        assert texts(branched) == [*kept, "And who built the light?", "Edric Gannow"]
    after = await sdk.threads.get_history(thread, limit=100)
    assert after[-len(history) :] == history, "the old branch stays"
    assert texts((await sdk.threads.get_state(thread, checkpoint=history[0]["checkpoint"]))["values"])[2:] == ANSWERED
    answering = next(state for state in history if state["next"] == ["answer"])
    again = await sdk.runs.wait(thread, "chat", input=None, checkpoint=answering["checkpoint"])
    assert texts(again) == [*GREETING, *ANSWERED], "an answer is made once more from its checkpoint"


@pytest.mark.nightly
async def test_answer_is_streamed_in_every_mode(sdk: LangGraphClient, oracle: Oracle) -> None:
    oracle.speaks = True
    thread, modes = await new_thread(sdk), ["values", "updates", "messages-tuple", "custom"]
    created: list[Any] = []
    stream = sdk.runs.stream(
        thread, "chat", input=said(QUESTION), context=PLAIN, stream_mode=modes, on_run_created=created.append
    )
    parts = await parts_of(stream)
    by_mode = {mode: [part.data for part in parts if part.event == mode] for mode in {part.event for part in parts}}
    run = by_mode["metadata"][0]["run_id"]
    assert created == [{"run_id": run, "thread_id": thread}]
    assert (texts(by_mode["values"][0]), texts(by_mode["values"][-1])) == ([QUESTION], ANSWERED)
    assert [node for update in by_mode["updates"] for node in update] == ["classify", "plan", "act", "answer"]
    chunks = [message for message, _ in by_mode["messages"]]
    last = by_mode["values"][-1]["messages"][-1]
    assert len(chunks) > 1, "the text is streamed before the footnotes"
    assert {chunk["id"] for chunk in chunks} == {last["id"]}
    assert "".join(chunk["content"] for chunk in chunks) == last["content"]
    assert by_mode["messages"][0][1]["langgraph_node"] == "answer"
    steps = [step["node"] for step in by_mode["custom"] if step.get("state") == "started"]
    assert steps == ["retrieve", "answer", "check_evidence"]
    assert any("text" in told for told in by_mode["custom"])
    assert parts[-1].event == "end"
    assert parts[-1].data == {"run_id": run, "status": "success"}

    again = await parts_of(sdk.runs.join_stream(thread, run, stream_mode=["values", "updates"]))
    assert [part.data for part in again if part.event == "values"] == by_mode["values"]
    middle = next(part.id for part in again if part.event == "updates")
    rest = await parts_of(sdk.runs.join_stream(thread, run, stream_mode=["updates"], last_event_id=middle))
    assert [part.data for part in rest if part.event == "updates"] == by_mode["updates"][1:]
    assert texts(await sdk.runs.join(thread, run)) == ANSWERED


async def begun(sdk: LangGraphClient, thread: str, oracle: Oracle, **more: Any) -> tuple[str, AsyncIterator[Any]]:
    """Start a run that waits for the model; return its id and the rest of its stream."""
    oracle.hold()
    stream = sdk.runs.stream(thread, "chat", input=said(QUESTION), context=PLAIN, **more)
    run = (await anext(stream)).data["run_id"]
    await asyncio.wait_for(oracle.asked.wait(), 60)
    return run, stream


async def test_run_is_cancelled_and_the_thread_continues(sdk: LangGraphClient, oracle: Oracle) -> None:
    thread = await new_thread(sdk)
    run, _ = await begun(sdk, thread, oracle)
    assert (await sdk.threads.get(thread))["status"] == "busy"
    with pytest.raises(httpx.HTTPStatusError) as busy:
        await turn(sdk, thread, "Hello!")
    assert busy.value.response.status_code == 409
    with pytest.raises(NotFoundError):
        await sdk.runs.cancel(thread, f"{run[:-1]}9")
    await sdk.runs.cancel(thread, run, wait=True)
    assert (await sdk.threads.get(thread))["status"] == "interrupted"
    oracle.free.set()
    assert texts(await turn(sdk, thread, "Hello!"))[-2:] == GREETING
    await begun(sdk, thread, oracle)
    oracle.free.set()
    replaced = await turn(sdk, thread, "Hello!", multitask_strategy="interrupt")
    assert texts(replaced)[-2:] == GREETING


async def test_closed_stream_cancels_only_on_request(sdk: LangGraphClient, oracle: Oracle) -> None:
    for mode, status in (("continue", "idle"), ("cancel", "interrupted")):
        thread = await new_thread(sdk)
        _, stream = await begun(sdk, thread, oracle, on_disconnect=mode)
        await stream.aclose()
        oracle.free.set() if mode == "continue" else None
        async with asyncio.timeout(300):
            while (await sdk.threads.get(thread))["status"] != status:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        oracle.free.set()


async def post(url: str, path: str, body: dict[str, Any]) -> httpx.Response:
    """Send what the SDK would not."""
    async with httpx.AsyncClient(base_url=url) as http:
        return await http.post(path, json={"assistant_id": "chat", "input": said("Hello!"), **body})


@pytest.mark.parametrize(
    "wrong",
    [
        {"context": {"max_calls": 0}},
        {"context": {"method": "nothing"}},
        {"input": said(" ")},
        {"input": {"question": "?"}},
        {"input": None},
        {"assistant_id": "par-rag", "context": {"max_tokens": -1}},
    ],
)
async def test_refused_run_leaves_the_created_thread(url: str, sdk: LangGraphClient, wrong: dict[str, Any]) -> None:
    thread = str((await sdk.threads.create(metadata={"title": "Mine"}))["thread_id"])
    before = await sdk.threads.get(thread)
    refused = await post(url, f"/threads/{thread}/runs/wait", wrong)
    assert refused.status_code == 400, refused.text
    assert await sdk.threads.get(thread) == before
    assert texts(await turn(sdk, thread, "Hello!")) == GREETING
    assert (await sdk.threads.get(thread))["metadata"]["title"] == "Mine"


@pytest.mark.parametrize(
    "wrong",
    [
        {"context": {"max_calls": 0}},
        {"input": said(" ")},
        {"assistant_id": "par-rag"},
        {"checkpoint_id": "1f0"},
        {"input": None, "command": {"resume": "yes"}},
    ],
)
async def test_refused_run_does_not_stop_the_present_one(
    url: str, sdk: LangGraphClient, oracle: Oracle, wrong: dict[str, Any]
) -> None:
    thread = await new_thread(sdk)
    await begun(sdk, thread, oracle)
    refused = await post(url, f"/threads/{thread}/runs/wait", {"multitask_strategy": "interrupt", **wrong})
    assert refused.status_code in (400, 404, 409), refused.text
    assert (await sdk.threads.get(thread))["status"] == "busy"
    oracle.free.set()


async def test_stream_of_an_earlier_run_does_not_stop_the_present_one(
    url: str, sdk: LangGraphClient, oracle: Oracle
) -> None:
    thread = await new_thread(sdk)
    run, stream = await begun(sdk, thread, oracle)
    oracle.free.set()
    await parts_of(stream)
    earlier = f"/threads/{thread}/runs/{run}/stream"
    _, present = await begun(sdk, thread, oracle)
    async with httpx.AsyncClient(base_url=url) as http:
        whole = await http.get(earlier, params={"cancel_on_disconnect": True})
        assert "event: end" in whole.text
        async with http.stream("GET", earlier, params={"cancel_on_disconnect": True}) as left:
            assert left.status_code == 200
    await asyncio.sleep(0.2)
    assert (await sdk.threads.get(thread))["status"] == "busy"
    oracle.free.set()
    assert (await parts_of(present))[-1].event == "end"
    assert (await sdk.threads.get(thread))["status"] == "idle"


async def test_search_filters_threads_by_status_and_metadata(url: str, sdk: LangGraphClient, oracle: Oracle) -> None:
    empty, done, busy = [
        str((await sdk.threads.create(metadata={"user": user}))["thread_id"]) for user in ("ada", "ada", "ben")
    ]
    await turn(sdk, done, "Hello!")
    await begun(sdk, busy, oracle)
    copied = {"subrun": 2, "hop": 2, "part_of": done}
    await sdk.threads.update(done, metadata=copied)

    async def found(**wanted: Any) -> list[str]:
        return [each["thread_id"] for each in await sdk.threads.search(**wanted)]

    assert await found() == [busy, done, empty]
    assert await found(status="idle") == [done, empty]
    assert await found(status="busy") == [busy]
    assert await found(metadata={"user": "ada"}) == [done, empty]
    assert await found(metadata={"user": "ada", "graph_id": "chat"}) == [done]
    assert await found(metadata={"hop": 2}) == [done]
    assert await found(limit=1, offset=1) == [done]
    for unknown in ({"graph_id": "nothing"}, {"graph_id": ["chat"]}, {"part_of": 5}, {"user": None}, {"": ""}):
        assert await found(metadata=unknown) == []
    oracle.free.set()


async def test_methods_and_threadless_runs(sdk: LangGraphClient) -> None:
    thread = await new_thread(sdk)
    done = await sdk.runs.wait(thread, "plain-rag", input={"question": QUESTION}, context={"top_k": 3, "max_calls": 5})
    assert done["verdict"]["text"] == "Edric Gannow"
    assert (await sdk.threads.get(thread))["metadata"]["graph_id"] == "plain-rag"
    with pytest.raises(httpx.HTTPStatusError) as taken:
        await sdk.runs.wait(thread, "plain-rag", input={"question": "And when?"})
    assert (taken.value.response.status_code, "question already" in taken.value.response.text) == (409, True)
    assert texts(await sdk.runs.wait(None, "chat", input=said("Who built it?"), context=PLAIN)) == [
        "Who built it?",
        "Edric Gannow",
    ], "nobody can be asked back"
    named = await sdk.runs.wait("mine", "chat", input=said("Hello!"), if_not_exists="create")
    assert texts(named) == GREETING
    assert (await sdk.threads.create(thread_id="mine", if_exists="do_nothing"))["thread_id"] == "mine"
    with pytest.raises(ConflictError, match="exists already"):
        await sdk.threads.create(thread_id="mine")


async def test_method_answers_a_message_with_a_message(sdk: LangGraphClient, oracle: Oracle) -> None:
    oracle.speaks = True
    thread = await new_thread(sdk)
    modes = ["values", "messages-tuple"]
    parts = await parts_of(sdk.runs.stream(thread, "plain-rag", input=said(QUESTION), stream_mode=modes))
    values = [part.data for part in parts if part.event == "values"]
    assert (texts(values[0]), texts(values[-1])) == ([QUESTION], ANSWERED)
    chunks = [part.data[0] for part in parts if part.event == "messages"]
    answer = values[-1]["messages"][-1]
    assert len(chunks) > 1, "the text is streamed before the footnotes"
    assert {chunk["id"] for chunk in chunks} == {answer["id"]}
    assert "".join(chunk["content"] for chunk in chunks) == answer["content"]
    assert [cited["quote"] for cited in answer["additional_kwargs"]["citations"]] == ["built by Edric Gannow"]
    assert answer["usage_metadata"]["total_tokens"] > 0
    history = await sdk.threads.get_history(thread)
    assert (
        history[0]["values"]["messages"]
        == values[-1]["messages"]
        == (await sdk.threads.get(thread))["values"]["messages"]
    )


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"input": {"messages": []}}, "one new message"),
        ({"input": {"messages": [{"role": "assistant", "content": "Hi"}]}}, "one new message"),
        ({"input": {"messages": 5}}, "one new message"),
        ({"input": said("  ")}, "question is empty"),
        ({"input": {"messages": [{"role": "user", "content": [{"type": "image", "url": "x"}]}]}}, "text only"),
        ({"context": {"metod": "auto"}}, "Did you mean method"),
        ({"context": {"max_calls": 0}}, "max_calls"),
        ({"checkpoint": {"checkpoint_id": "1f0", "checkpoint_ns": ""}}, "no checkpoint '1f0'"),
        ({"checkpoint": {"checkpoint_id": "1f0", "checkpoint_ns": "act:1"}}, "checkpoint_ns"),
        ({"command": {"goto": "answer"}}, "does not support the field"),
        ({"webhook": "https://example.org"}, "does not support the field"),
        ({"stream_mode": ["events"]}, "stream_mode"),
        ({"multitask_strategy": "enqueue"}, "multitask_strategy"),
        ({"assistant_id": "chatt"}, "Did you mean chat"),
    ],
)
async def test_unusable_request_is_refused_with_its_reason(
    sdk: LangGraphClient, url: str, change: dict[str, Any], says: str
) -> None:
    thread = await new_thread(sdk)
    await turn(sdk, thread, "Hello!")
    body = {"assistant_id": "chat", "input": said(QUESTION), **change}
    async with httpx.AsyncClient(base_url=url) as http:
        refused = await http.post(f"/langgraph/threads/{thread}/runs/wait".removeprefix("/langgraph"), json=body)
        assert refused.status_code in (400, 404), refused.text
        assert says in refused.json()["error"]["message"]
        without_type = await http.post("/threads/search", content=b"{}", headers={"content-type": "text/plain"})
        assert [each["thread_id"] for each in without_type.json()] == [thread]
        assert (await http.get("/store/items")).status_code == 501
    assert texts((await sdk.threads.get(thread))["values"]) == GREETING


async def test_key_sees_its_own_threads_only(tmp_path: Path, oracle: Oracle) -> None:
    async with talking(tmp_path, oracle, api_keys=KEYS) as url:
        anna, ben = client_at(url, "apple-secret"), client_at(url, "plum-secret")
        made = await anna.threads.create(thread_id="mine", metadata={"title": "Anna's"})
        assert made["thread_id"] == "mine"
        assert (await ben.threads.create(thread_id="mine"))["metadata"] == {}
        assert [each["metadata"] for each in await anna.threads.search()] == [{"title": "Anna's"}]
        other = (await anna.threads.create())["thread_id"]
        for call in (
            ben.threads.get,
            ben.threads.get_state,
            ben.threads.get_history,
            ben.threads.delete,
        ):
            with pytest.raises(NotFoundError):
                await call(other)
        async with httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/info")).status_code == 401
            assert (await http.get("/info", headers={"x-api-key": "apple-secret"})).status_code == 200
