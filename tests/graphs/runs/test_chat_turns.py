"""A chat as runs of one thread: each message is a turn, also after an interruption."""

import json
from typing import Any

import pytest
from chat_model import BACK, ChatModel
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command
from pydantic_core import to_json
from scenes import Chain, RunsFor, down_once, finish

from sleuth.agents.model import Reply as ModelReply
from sleuth.agents.model import Request
from sleuth.graphs.core.context import Budget
from sleuth.graphs.runs.history import export_run, fork_run, list_checkpoints
from sleuth.graphs.runs.pruning import remove_runs
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, RunError, UsageError

PAR = {"method": "par-rag"}
FOLLOW_UP = "And in which year was it founded?"


async def begin(runs: RunService, message: str, **values: object) -> str:
    return await runs.start(message, "chat", values={**PAR, **values}, thread="talk")


async def test_messages_are_turns_of_one_thread(runs_with: RunsFor, chain: Chain) -> None:
    model = ChatModel(chain, "small talk", "follow-up")
    runs = runs_with(model)
    await begin(runs, "I like Trevandle & Ruske.")
    first = await finish(runs, "talk")
    assert (first.method, first.status, first.text) == ("chat", "answered", "Hello! What would you like to know?")
    assert await runs.start(FOLLOW_UP, "chat", thread="talk") == "talk"
    second = await finish(runs, "talk")
    assert (second.question, second.text, second.cost["calls"]) == (chain.question, "1868", len(model.requests) - 2)
    assert second.citations and second.hops
    hop = await runs.store.threads.get(second.hops[0]["thread"])
    assert (hop.method, hop.part_of, hop.status) == ("par-rag", "talk", "done")
    assert await runs.answer("talk") == second
    assert (await runs.store.threads.get("talk")).question == "I like Trevandle & Ruske.", "the list names the chat"
    moments = await list_checkpoints(runs, "talk")
    assert [moment.node for moment in moments if moment.source == "input"] == [[], []]
    assert json.loads(to_json([moment.to_json() for moment in moments]))
    assert (await export_run(runs, "talk"))["hops"]
    await remove_runs(runs, "talk")
    assert await runs.store.threads.list_newest() == []


class Draining(ChatModel):
    """Requests a drain during its third call, which is one of the sub-run."""

    control = RunControl()

    async def call(self, request: Request) -> ModelReply:
        reply = await super().call(request)
        if len(self.requests) == 3:
            self.control.request_drain()
        return reply


async def test_drain_interrupts_the_sub_run_after_its_present_step(runs_with: RunsFor, chain: Chain) -> None:
    model = Draining(chain, "follow-up")
    runs = runs_with(model)
    await begin(runs, FOLLOW_UP)
    with pytest.raises(GraphDrained):
        _ = [event async for event in runs.run("talk", control=model.control)]
    assert len(model.requests) == 3
    assert [thread.state for thread in await runs.store.threads.list_newest()] == ["interrupted"] * 2
    answer = await finish(runs, "talk")
    assert answer.cost["calls"] == len(model.requests) > 3


async def test_question_of_the_chat_is_an_answer_with_state_waiting(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "ambiguous"))
    await begin(runs, "How old is it?")
    back = await finish(runs, "talk")
    assert (back.status, back.text, back.asks) == ("waiting", BACK["question"], BACK)
    thread = await runs.store.threads.get("talk")
    assert (thread.state, thread.status) == ("waiting", "done")
    assert await finish(runs, "talk") == back, "going on without a reply changes nothing"
    await runs.start("the yard", "chat", thread="talk")
    answer = await finish(runs, "talk")
    assert (answer.text, answer.asks) == ("1868", None)
    assert "asks" not in answer.to_json()


async def test_plan_is_edited_as_a_list(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question"))
    await begin(runs, chain.question, approve_plan=True)
    await finish(runs, "talk")
    await runs.start(json.dumps([chain.hops[1].asked]), "chat", thread="talk")
    assert [note["question"] for note in (await finish(runs, "talk")).notes][:1] == [chain.hops[1].asked]


@pytest.mark.parametrize("at", range(1, 4))
async def test_turn_stopped_at_any_call_is_resumed(runs_with: RunsFor, chain: Chain, at: int) -> None:
    model = ChatModel(chain, "small talk", "follow-up")
    runs = runs_with(model)
    await begin(runs, "I like Trevandle & Ruske.")
    await finish(runs, "talk")

    model.answer = down_once(model.answer, at)
    await runs.start(FOLLOW_UP, "chat", thread="talk")
    with pytest.raises(ModelUnavailable):
        await finish(runs, "talk")
    with pytest.raises(RunError, match="no answer yet"):
        await runs.answer("talk")
    with pytest.raises(RunError, match="sleuth resume talk"):
        await runs.start("Hello?", "chat", thread="talk")
    assert (await finish(runs, "talk")).text == "1868"
    thread = await runs.store.threads.get("talk")
    state = await runs.state(thread)
    assert [message.type for message in state.values["messages"]] == ["human", "ai"] * 2


async def test_stored_message_is_sent_after_a_kill(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "small talk", "small talk"))
    await begin(runs, "Hello.")
    await finish(runs, "talk")
    await runs.start("Hello again.", "chat", thread="talk")  # and here the process is killed
    assert (await runs.store.threads.get("talk")).state == "queued"
    with pytest.raises(RunError, match="no answer yet"):
        await runs.answer("talk")
    await finish(runs, "talk")
    assert (await runs.answer("talk")).question == "Hello again."


async def test_settings_and_budget_are_those_of_the_latest_turn(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question", "question"))
    await runs.start(chain.question, "chat", values=PAR, budget=Budget(max_calls=2), thread="talk")
    assert (await finish(runs, "talk")).status == "out_of_budget"
    await runs.start(chain.question, "chat", values={"method_settings": {"review": False}}, thread="talk")
    answer = await finish(runs, "talk")
    assert answer.status == "answered"
    assert "par-rag/review" not in answer.cost["nodes"]
    with pytest.raises(UsageError, match="Did you mean method"):
        await runs.start("Well?", "chat", values={"metod": "ras"}, thread="talk")


async def test_chat_can_be_forked(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question"))
    await begin(runs, chain.question)
    answer = await finish(runs, "talk")
    planned = next(moment for moment in await list_checkpoints(runs, "talk") if moment.node == ["plan"])
    await fork_run(runs, "talk", at=planned.checkpoint, changes={"question": chain.hops[0].asked})
    again = await finish(runs, "talk")
    assert again.question == chain.hops[0].asked
    assert again.hops and answer.hops and again.hops[0]["thread"] != answer.hops[0]["thread"]


@pytest.mark.parametrize(("first", "second"), [("par-rag", "chat"), ("chat", "par-rag")])
async def test_only_a_chat_thread_takes_more_messages(
    runs_with: RunsFor, chain: Chain, first: str, second: str
) -> None:
    runs = runs_with(ChatModel(chain))
    await runs.start(chain.question, first, thread="talk")
    with pytest.raises(RunError, match="used already"):
        await runs.start(chain.question, second, thread="talk")


async def add_input(runs: RunService, given: str | Command[Any], start: str = "") -> None:
    thread = await runs.store.threads.get("talk")
    await runs.add_turn(thread, given, start=start, values=thread.options.values, budget=Budget())


async def test_input_after_a_failed_turn_starts_a_new_turn(runs_with: RunsFor, chain: Chain) -> None:
    model = ChatModel(chain, "small talk")
    runs = runs_with(model)
    await begin(runs, chain.question)
    model.answer = down_once(model.answer, 1)
    with pytest.raises(ModelUnavailable):
        await finish(runs, "talk")
    await add_input(runs, "Never mind, hello!")
    assert (await finish(runs, "talk")).text == "Hello! What would you like to know?"


async def test_reply_is_given_to_an_interrupt_also_of_an_older_branch(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question", "small talk"))
    await begin(runs, chain.question, approve_plan=True)
    waiting = await finish(runs, "talk")
    await add_input(runs, "Hello!")
    assert (await finish(runs, "talk")).status == "answered"
    assert (await said(runs))[0] == chain.question
    approved = Command(resume={"decisions": [{"type": "approve"}]})
    await add_input(runs, approved, start=waiting.checkpoint)
    assert (await finish(runs, "talk")).text == "1868"
    assert await said(runs) == [chain.question, "1868"]


async def said(runs: RunService) -> list[str]:
    """Return the texts of the latest branch, without footnotes."""
    thread = await runs.store.threads.get("talk")
    messages = (await runs.state(thread)).values["messages"]
    return [message.text.split(" [1]")[0] for message in messages]
