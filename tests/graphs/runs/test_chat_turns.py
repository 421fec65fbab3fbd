"""A chat as runs of one thread: each message is a turn, also after an interruption."""

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from chat_model import BACK, ChatModel
from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from pydantic_core import to_json
from scenes import Chain, RunsFor, ask, down_once, finish

from sleuth.agents.model import Reply as ModelReply
from sleuth.agents.model import Request
from sleuth.graphs.chat.messages import messages_of
from sleuth.graphs.chat.sending import branch_chat, reply_to, send
from sleuth.graphs.chat.small_talk import is_answered_by_rule
from sleuth.graphs.core.answer import Answer
from sleuth.graphs.core.context import Budget
from sleuth.graphs.persistence.run_filter import RunFilter
from sleuth.graphs.runs.history import export_run, fork_run, list_checkpoints
from sleuth.graphs.runs.pruning import remove_runs
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, RunError, UsageError

PAR = {"method": "par-rag"}
FOLLOW_UP = "And in which year was it founded?"


async def begin(runs: RunService, message: str, **values: object) -> str:
    return await send(runs, RunRequest(question=message, method="chat", values={**PAR, **values}, thread="talk"))


async def opened(runs: RunService, message: str, **values: object) -> Answer:
    """Begin a chat and return the reply."""
    return await finish(runs, await begin(runs, message, **values))


async def say(runs: RunService, message: str) -> Answer:
    """Send the next message of the chat and return the reply."""
    return await ask(runs, message, "chat", thread="talk")


async def test_messages_are_turns_of_one_thread(runs_with: RunsFor, chain: Chain) -> None:
    model = ChatModel(chain, "small talk", "follow-up")
    runs = runs_with(model)
    first = await opened(runs, "I like Trevandle & Ruske.")
    assert (first.method, first.status, first.text) == ("chat", "answered", "Hello! What would you like to know?")
    second = await say(runs, FOLLOW_UP)
    assert second.thread == "talk"
    assert (second.question, second.text, second.cost["calls"]) == (chain.question, "1868", len(model.requests) - 2)
    assert second.citations and second.hops
    hop = await runs.store.threads.get(second.hops[0]["thread"])
    assert (hop.method, hop.part_of, hop.state) == ("par-rag", "talk", "done")
    assert await runs.answer("talk") == second
    assert (await runs.store.threads.get("talk")).question == FOLLOW_UP, "the list names the chat"
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
    back = await opened(runs, "How old is it?")
    assert (back.status, back.text, back.asks) == ("waiting", BACK["question"], BACK)
    thread = await runs.store.threads.get("talk")
    assert thread.state == "waiting"
    assert await finish(runs, "talk") == back, "going on without a reply changes nothing"
    answer = await say(runs, "the yard")
    assert (answer.text, answer.asks) == ("1868", None)
    assert "asks" not in answer.to_json()


async def test_plan_is_edited_as_a_list(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question"))
    await opened(runs, chain.question, approve_plan=True)
    answer = await say(runs, json.dumps([chain.hops[1].asked]))
    assert [note["question"] for note in answer.notes][:1] == [chain.hops[1].asked]


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        ({"decisions": []}, "decisions: List should have at least 1 item"),
        ({"decisions": [{"type": "perhaps"}]}, "decisions.0: Input tag 'perhaps'"),
        (7, "Input should be a valid dictionary"),
        ("[", "steps: it is not JSON"),
    ],
)
async def test_invalid_reply_is_refused_before_it_is_stored(
    runs_with: RunsFor, chain: Chain, reply: Any, why: str
) -> None:
    runs = runs_with(ChatModel(chain, "question"))
    waiting, before = await opened(runs, chain.question, approve_plan=True), await runs.store.threads.get("talk")
    with pytest.raises(UsageError, match=re.escape(f"The reply cannot be used ({why}")):
        await store_reply(runs, reply)
    assert await runs.store.threads.get("talk") == before
    assert await finish(runs, "talk") == waiting, "resumed without a reply, it still waits"
    (named,) = (await runs.state(before)).interrupts
    await store_reply(runs, {named.id: "approve"})
    assert (await finish(runs, "talk")).text == "1868"


@pytest.mark.parametrize("at", range(1, 4))
async def test_turn_stopped_at_any_call_is_resumed(runs_with: RunsFor, chain: Chain, at: int) -> None:
    model = ChatModel(chain, "small talk", "follow-up")
    runs = runs_with(model)
    await opened(runs, "I like Trevandle & Ruske.")

    model.answer = down_once(model.answer, at)
    await send(runs, RunRequest(question=FOLLOW_UP, method="chat", thread="talk"))
    with pytest.raises(ModelUnavailable):
        await finish(runs, "talk")
    with pytest.raises(RunError, match="no answer yet"):
        await runs.answer("talk")
    assert (await finish(runs, "talk")).text == "1868"
    thread = await runs.store.threads.get("talk")
    state = await runs.state(thread)
    assert [message.type for message in state.values["messages"]] == ["human", "ai"] * 2


async def test_stored_message_is_sent_after_a_kill(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "small talk", "small talk"))
    await opened(runs, "Hello.")
    await send(runs, RunRequest(question="Hello again.", method="chat", thread="talk"))  # then the process is killed
    assert (await runs.store.threads.get("talk")).state == "queued"
    with pytest.raises(RunError, match="no answer yet"):
        await runs.answer("talk")
    await finish(runs, "talk")
    assert (await runs.answer("talk")).question == "Hello again."


async def test_settings_and_budget_are_those_of_the_latest_turn(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question", "question"))
    first = await ask(runs, chain.question, "chat", values=PAR, budget=Budget(max_calls=2), thread="talk")
    assert first.status == "out_of_budget"
    values = {"method_settings": {"review": False}}
    answer = await ask(runs, chain.question, "chat", values=values, thread="talk")
    assert answer.status == "answered"
    assert "par-rag/review" not in answer.cost["nodes"]
    with pytest.raises(UsageError, match="Did you mean method"):
        await send(runs, RunRequest(question="Well?", method="chat", values={"metod": "ras"}, thread="talk"))


async def test_chat_can_be_forked(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question"))
    answer = await opened(runs, chain.question)
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
    await send(runs, RunRequest(question=chain.question, method=first, thread="talk"))
    with pytest.raises(RunError, match="used already"):
        await send(runs, RunRequest(question=chain.question, method=second, thread="talk"))


async def store_reply(runs: RunService, value: Any, checkpoint: str = "") -> None:
    async with runs.hold("talk") as held:
        await reply_to(held, value, checkpoint=checkpoint)


async def add_input(runs: RunService, text: str, start: str = "") -> None:
    async with runs.hold("talk") as held:
        await branch_chat(held, RunRequest(question=text, method="chat", thread="talk"), checkpoint=start)


NEVER_SENT = "The chat fails before its first checkpoint."


async def fail(runs: RunService, model: ChatModel, *, before_the_first_checkpoint: bool = False) -> None:
    """Let the present turn fail, in its first model call or before it was sent to the graph."""
    if before_the_first_checkpoint:
        await runs.store.threads.set_state("talk", "failed", at="", problem=NEVER_SENT)
        return
    model.answer = down_once(model.answer, 1)
    with pytest.raises(ModelUnavailable):
        await finish(runs, "talk")


@pytest.mark.parametrize("is_early", [False, True])
async def test_message_without_an_answer_stays_in_the_chat(runs_with: RunsFor, chain: Chain, is_early: bool) -> None:
    model = ChatModel(chain, "question", "follow-up")
    runs = runs_with(model)
    await opened(runs, chain.question)
    await send(runs, RunRequest(question="Who built the ferry?", method="chat", thread="talk"))
    await fail(runs, model, before_the_first_checkpoint=is_early)
    thread = await runs.store.threads.get("talk")
    shown = messages_of(thread, await runs.state(thread))[-1]
    assert shown.text == "Who built the ferry?"
    assert shown.additional_kwargs == {"state": "failed", "problem": thread.problem}
    assert thread.problem

    assert (await say(runs, FOLLOW_UP)).text == "1868"
    problem = NEVER_SENT if is_early else "It is down: start it."
    says = f"This message was not answered. {problem}"
    assert await said(runs) == [chain.question, "1868", "Who built the ferry?", says, FOLLOW_UP, "1868"]
    rewriting = next(each for each in reversed(model.requests) if each.prompt == "rewriter/rewrite")
    assert all("not answered" not in turn["text"] for turn in rewriting.input["turns"])


async def test_stopped_turn_is_followed_by_another_message(runs_with: RunsFor, chain: Chain) -> None:
    model = ChatModel(chain, "question")
    runs = runs_with(model)
    await begin(runs, "Who built the ferry?")
    await runs.mark_stopped("talk")
    for message in (chain.question, FOLLOW_UP):  # neither is sent before the next one
        await send(runs, RunRequest(question=message, method="chat", thread="talk"))
    await finish(runs, "talk")
    stopped = "This message was not answered: it was stopped."
    assert await said(runs) == ["Who built the ferry?", stopped, chain.question, stopped, FOLLOW_UP, "1868"]


async def test_earlier_citations_stay_in_the_chat(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question", "follow-up"))
    answer = await ask(runs, chain.question)
    await ask(runs, FOLLOW_UP, "chat", values=PAR, thread="talk", after=answer)
    await say(runs, "Thanks!")
    thread = await runs.store.threads.get("talk")
    replies = [each for each in messages_of(thread, await runs.state(thread)) if each.type == "ai"]
    assert [each.additional_kwargs["citations"] for each in replies] == [answer.citations] * 2 + [[]]
    assert [each.additional_kwargs["method"] for each in replies] == ["par-rag", "par-rag", ""]


# Small talk


@pytest.mark.parametrize("message", ["Thanks!", "/help", "How about the weather"])
async def test_small_talk_changes_neither_the_state_nor_the_question(
    runs_with: RunsFor, chain: Chain, message: str
) -> None:
    unknown = replace(chain, answer="", hops=[replace(hop, answer="") for hop in chain.hops])
    runs = runs_with(ChatModel(unknown, "question", "small talk"))
    assert (await opened(runs, chain.question)).status == "unknown"
    before = await runs.store.threads.get("talk")
    reply = await say(runs, message)
    assert (reply.status, reply.citations) == ("answered", [])
    after = await runs.store.threads.get("talk")
    listed = ("outcome", "state", "problem", "question", "answer", "verdict", "calls", "seconds")
    assert [getattr(after, name) for name in listed] == [getattr(before, name) for name in listed]
    listed_runs = await runs.store.threads.list_newest(RunFilter(outcomes=("unknown",), with_subruns=False))
    assert [each.id for each in listed_runs] == ["talk"]


@pytest.mark.parametrize("message", ["Hello!", "/help", "How about the weather"])
async def test_chat_of_small_talk_is_no_run(runs_with: RunsFor, chain: Chain, message: str) -> None:
    runs = runs_with(ChatModel(chain, *([] if is_answered_by_rule(message) else ["small talk"]), "question"))
    runs_listed = RunFilter(with_empty=False, with_subruns=False)
    await opened(runs, message)
    assert await runs.store.threads.list_newest(runs_listed) == []
    assert (await runs.store.threads.get("talk")).outcome == "done"
    await send(runs, RunRequest(question=chain.question, method="chat", thread="talk"))
    [queued] = await runs.store.threads.list_newest(runs_listed)
    assert (queued.question, queued.state) == (chain.question, "queued")
    await finish(runs, "talk")
    [listed] = await runs.store.threads.list_newest(runs_listed)
    assert (listed.question, listed.outcome) == (chain.question, "answered")


async def test_small_talk_after_a_failed_turn_keeps_it_to_be_resumed(runs_with: RunsFor, chain: Chain) -> None:
    model = ChatModel(chain, "question")
    runs = runs_with(model)
    await begin(runs, chain.question)
    await fail(runs, model)
    assert (await say(runs, "Hello?")).text == "Hello! What would you like to know?"
    thread = await runs.store.threads.get("talk")
    assert (thread.state, thread.problem) == ("failed", "It is down: start it.")
    assert (await finish(runs, "talk")).text == "1868"
    assert (await runs.store.threads.get("talk")).outcome == "answered"


async def test_small_talk_while_the_chat_waits_leaves_it_waiting(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "ambiguous"))
    back = await opened(runs, "How old is it?")
    assert (await say(runs, "/help")).asks == back.asks
    assert (await said(runs))[-1].startswith("/help")
    assert (await runs.store.threads.get("talk")).state == "waiting"
    assert (await say(runs, "the yard")).text == "1868"


async def test_method_command_changes_the_method_of_the_next_questions(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question"))
    await say(runs, "/method par-rag")
    with pytest.raises(UsageError, match="Did you mean par-rag"):
        await send(runs, RunRequest(question="/method par-rg", method="chat", thread="talk"))
    answer = await say(runs, chain.question)
    assert answer.hops and answer.hops[0]["method"] == "par-rag"


async def test_reply_is_given_to_an_interrupt_also_of_an_older_branch(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(ChatModel(chain, "question", "small talk"))
    waiting = await opened(runs, chain.question, approve_plan=True)
    await add_input(runs, "Hello!")
    assert (await finish(runs, "talk")).status == "answered"
    assert (await said(runs))[0] == chain.question
    await store_reply(runs, {"decisions": [{"type": "approve"}]}, checkpoint=waiting.checkpoint)
    assert (await finish(runs, "talk")).text == "1868"
    assert await said(runs) == [chain.question, "1868"]
    await store_reply(runs, "reject", checkpoint=waiting.checkpoint)
    assert (await finish(runs, "talk")).text == "The plan was not carried out.", "not the earlier decision"


async def said(runs: RunService) -> list[str]:
    """Return the texts of the latest branch, without footnotes."""
    thread = await runs.store.threads.get("talk")
    messages = (await runs.state(thread)).values["messages"]
    return [message.text.split(" [1]")[0] for message in messages]
