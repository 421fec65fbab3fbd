import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from scripted_model import ScriptedModel, reply

from sleuth.agents.formatting import Source
from sleuth.agents.model import Message, Reply, Request
from sleuth.agents.model_calls.caller import ModelCaller
from sleuth.agents.roles.inputs import SourcesInput, StepsInput
from sleuth.agents.roles.planning import PLAN, REFINE, Refined, RefineInput
from sleuth.agents.roles.reading import DRAFT, Draft
from sleuth.tools.errors import BadReply, ContextTooLong, ModelUnavailable

MakeHarness = Callable[..., Any]

VARN = Draft(answer="Varn")


def given(question: str = "Where?", *texts: str) -> SourcesInput:
    return SourcesInput(question=question, sources=tuple(Source(title="t", text=text) for text in texts))


async def draft(caller: ModelCaller) -> Draft:
    return await caller.ask(DRAFT, given("Where?", "In Varn."))


async def test_ask_returns_typed_output_and_records_the_call(harness: MakeHarness) -> None:
    model = ScriptedModel([VARN])
    node = harness(model)
    assert await node.run(draft) == VARN
    (request,) = model.requests
    ((call_id, record),) = node.caller.calls.items()
    assert call_id == request.call_id
    assert await node.archive.load([record["prompt"]]) == [request.text()]
    assert {key: record[key] for key in ("role", "node", "model", "repair")} == {
        "role": "drafter",
        "node": "draft",
        "model": "scripted",
        "repair": False,
    }
    assert record["prompt_tokens"] > 0 < record["completion_tokens"]
    assert len(record["version"]) == 12
    assert node.caller.warnings == []
    assert model.counted == 0, "a short prompt is not counted"
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert request.schema == DRAFT.schema()
    assert request.input == {"question": "Where?", "sources": ({"title": "t", "text": "In Varn."},)}


async def test_ask_repairs_a_bad_reply_once(harness: MakeHarness) -> None:
    model = ScriptedModel(["Varn, I think.", VARN])
    node = harness(model)
    assert await node.run(draft) == VARN
    first, second = model.requests
    assert second.messages[:2] == first.messages
    assert second.messages[2] == {"role": "assistant", "content": "Varn, I think."}
    assert "no complete JSON" in second.messages[3]["content"]
    assert [record["repair"] for record in node.caller.calls.values()] == [False, True]
    assert first.sampling.seed != second.sampling.seed


async def test_ask_second_bad_reply_raises_and_the_next_ask_works(harness: MakeHarness) -> None:
    async def work(caller: ModelCaller) -> Draft:
        with pytest.raises(BadReply, match=r"The drafter gave a reply that cannot be used: .* It begins 'still no'"):
            await draft(caller)
        assert len(caller.calls) == 2
        return await draft(caller)

    assert await harness(ScriptedModel(["no", "still no", VARN])).run(work) == VARN


async def drafts(caller: ModelCaller) -> list[Draft]:
    return await asyncio.gather(*(caller.ask(DRAFT, given(f"Question {i}?")) for i in range(4)))


async def test_seeds_depend_on_place_and_question_not_on_thread(harness: MakeHarness) -> None:
    async def seeds(thread: str, seed: str) -> list[int]:
        model = ScriptedModel([VARN] * 4)
        await harness(model, seed=seed).run(drafts, thread=thread)
        return [request.sampling.seed for request in model.requests]

    first = await seeds("1", "a")
    assert first == await seeds("2", "a")
    assert len(set(first)) == 4
    assert set(first).isdisjoint(await seeds("1", "b"))
    assert all(0 <= seed < 2**31 for seed in first)


class NumberedAnswers(ScriptedModel):
    """A model that answers numbered questions, one of them badly at first."""

    async def call(self, request: Request) -> Reply:
        if request.role == "refiner":
            return await super().call(request)
        self.requests.append(request)
        at, repair = request.input["question"].split()[1].rstrip("?"), len(request.messages) > 2
        return reply("bad") if at == "1" and not repair else reply(Draft(answer=at).model_dump_json())


async def test_resumed_node_repeats_only_incomplete_calls(harness: MakeHarness) -> None:
    answers = [Draft(answer=str(i)) for i in range(3)]
    model = NumberedAnswers([ModelUnavailable("down"), Refined(question="q")])

    async def work(caller: ModelCaller) -> tuple[list[Draft], Refined]:
        found = await asyncio.gather(*(caller.ask(DRAFT, given(f"Question {i}?")) for i in range(3)))
        return found, await caller.ask(REFINE, RefineInput(question="q", answers=(), original="o"))

    node, saver = harness(model), InMemorySaver()
    with pytest.raises(ModelUnavailable):
        await node.run(work, saver=saver)
    before = dict(node.caller.calls)
    found, refined = await node.run(work, saver=saver)
    model.done()
    assert found == answers
    assert refined == Refined(question="q")
    assert len(before) == 4
    assert before.items() < node.caller.calls.items()
    failed, again = model.requests[-2:]
    assert failed == again


@dataclass
class ReversedReplies:
    """A model that answers four numbered questions in reverse order; some badly, one with an error."""

    bad: frozenset[int] = frozenset()
    failing: int | None = None
    context_window: int = 8192
    repaired: list[int] = field(default_factory=list)
    replied: list[asyncio.Event] = field(default_factory=lambda: [asyncio.Event() for _ in range(5)])

    async def call(self, request: Request) -> Reply:
        number = int(request.input["question"].split()[1].rstrip("?"))
        if len(request.messages) > 2:
            self.repaired.append(number)
        elif number < 3:
            await self.replied[number + 1].wait()
        self.replied[number].set()
        if number == self.failing:
            self.failing = None
            raise ModelUnavailable("down")
        text = "bad" if number in self.bad else Draft(answer=str(number)).model_dump_json()
        return {**reply(text, prompt_tokens=number), "warnings": [f"reply {number}"]}

    async def count_tokens(self, messages: tuple[Message, ...], *, role: str) -> int:
        return 1


async def ask_and_warn(caller: ModelCaller) -> None:
    """Ask four questions concurrently; warn after each, and at the end."""

    async def one(number: int) -> None:
        try:
            await caller.ask(DRAFT, given(f"Question {number}?"))
        except BadReply:
            caller.warn(f"not understood: {number}")
        else:
            caller.warn(f"understood: {number}")

    await asyncio.gather(*map(one, range(4)))
    caller.warn("done")


IN_ORDER = [
    *("reply 0", "understood: 0", "reply 1", "understood: 1", "reply 2", "not understood: 2"),
    *("reply 3", "understood: 3", "done"),
]


@pytest.mark.parametrize("failing", [None, *range(4)])
async def test_warnings_and_calls_are_ordered_by_ask_also_after_a_resume(
    harness: MakeHarness, failing: int | None
) -> None:
    node, saver = harness(ReversedReplies(bad=frozenset({2}), failing=failing)), InMemorySaver()
    if failing is not None:
        with pytest.raises(ModelUnavailable):
            await node.run(ask_and_warn, saver=saver)
    await node.run(ask_and_warn, saver=saver)
    assert list(node.caller.warnings) == IN_ORDER
    assert [call["prompt_tokens"] for call in node.caller.calls.values()] == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("room", range(5))
async def test_earlier_asks_get_the_remaining_repairs(harness: MakeHarness, room: int) -> None:
    model = ReversedReplies(bad=frozenset(range(4)))
    node = harness(model, limit=4 + room)
    await node.run(ask_and_warn)
    assert sorted(model.repaired) == list(range(room))
    assert len(node.caller.calls) == 4 + room


async def test_ask_drops_the_last_sources_until_the_prompt_fits(harness: MakeHarness) -> None:
    model = ScriptedModel([VARN], context_window=DRAFT.sampling.max_tokens + 300)
    node = harness(model)
    await node.run(lambda caller: caller.ask(DRAFT, given("Where?", *(f"text{i} " + "word " * 60 for i in range(5)))))
    prompt = model.requests[0].text()
    assert "text2" in prompt and "text3" not in prompt
    assert node.caller.warnings == ["drafter/draft: 2 of 5 passages left out: the model's context is too small"]


async def test_ask_cuts_a_source_that_outweighs_the_others(harness: MakeHarness) -> None:
    model = ScriptedModel([VARN], context_window=DRAFT.sampling.max_tokens + 400)
    node = harness(model)
    await node.run(lambda caller: caller.ask(DRAFT, given("Where?", "word " * 1000, "small", "tiny")))
    first, *others = model.requests[0].input["sources"]
    assert [source["text"] for source in others] == ["small", "tiny"]
    assert first["text"] and ("word " * 1000).startswith(first["text"])
    loss = "drafter/draft: 0 of 3 passages left out and 1 shortened: the model's context is too small"
    assert node.caller.warnings == [loss]


async def test_ask_halves_sources_until_the_server_accepts_the_length(harness: MakeHarness) -> None:
    model = ScriptedModel([*[ContextTooLong("too long")] * 4, VARN])
    node = harness(model)
    texts = (f"text{at} " + "word " * 100 for at in range(5))
    assert await node.run(lambda caller: caller.ask(DRAFT, given("Where?", *texts))) == VARN
    assert ["text1" in request.text() for request in model.requests] == [True, True, True, False, False]
    assert len(model.requests[4].text()) < len(model.requests[3].text())
    loss = "drafter/draft: 4 of 5 passages left out and 1 shortened: the model's context is too small"
    assert node.caller.warnings == [loss]


@pytest.mark.parametrize("texts", [(), ("short",), ("one", "two", "three")])
async def test_ask_whose_shortest_prompt_is_refused_shows_the_reason(
    harness: MakeHarness, texts: Sequence[str]
) -> None:
    node = harness(ScriptedModel([ContextTooLong("The server has 64 tokens.")] * 3))
    with pytest.raises(ContextTooLong, match=r"The server has 64 tokens\. The question is too long .*: shorten it"):
        await node.run(lambda caller: caller.ask(DRAFT, given("Where?", *texts)))


async def test_ask_too_long_question_is_refused_before_sending(harness: MakeHarness) -> None:
    model = ScriptedModel(context_window=2000)
    with pytest.raises(ContextTooLong, match="question is too long"):
        await harness(model).run(lambda caller: caller.ask(PLAN, StepsInput(question="why " * 3000)))
    assert model.requests == []
