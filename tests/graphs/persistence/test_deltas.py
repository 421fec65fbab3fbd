"""Tokens streamed to a listener while replies are written; a listener changes nothing else."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from scenes import Chain, Replying, RunsFor

from sleuth.agents.model import Reply, Request
from sleuth.graphs.core.events import Delta, Event, Reset, Step
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable


@dataclass
class Streaming(Replying):
    """Model that streams its replies in two halves, and fails once in the middle of call `breaks_at`."""

    breaks_at: int = 0

    async def call(self, request: Request) -> Reply:
        reply = await super().call(request)
        if request.listener:
            half = len(reply["text"]) // 2
            request.listener.delta(reply["text"][:half])
            if len(self.requests) == self.breaks_at:
                raise ModelUnavailable("The connection broke.")
            request.listener.delta(reply["text"][half:])
        return reply


def always() -> bool:
    return True


async def collect_events(
    runs: RunService, thread: str, wants_tokens: Callable[[], bool] | None = always
) -> list[Event]:
    return [event async for event in runs.run(thread, wants_tokens=wants_tokens)]


async def start(runs: RunService, chain: Chain, method: str = "par-rag") -> str:
    return await runs.start(RunRequest(question=chain.question, method=method))


def texts(events: list[Event]) -> dict[str, str]:
    """Return the tokens of a listener by call, without those that were reset."""
    tokens: dict[str, str] = {}
    for event in events:
        if isinstance(event, Delta):
            tokens[event.call] = tokens.get(event.call, "") + event.text
        if isinstance(event, Reset):
            tokens.pop(event.call, None)
    return tokens


async def test_run_is_the_same_with_and_without_listener(runs_with: RunsFor, chain: Chain) -> None:
    ends = []
    for wants_tokens in (always, lambda: False, None):
        runs = runs_with(Streaming(chain.reply_to))
        thread = await start(runs, chain)
        events = await collect_events(runs, thread, wants_tokens)
        assert any(isinstance(event, Delta) for event in events) is (wants_tokens is always)
        row = await runs.store.threads.get(thread)
        values = (await runs.state(row)).values
        steps = [(event.node, event.state, event.update.keys()) for event in events if isinstance(event, Step)]
        ends.append((steps, _without_ids(values)))
    assert ends[0] == ends[1] == ends[2]


def _without_ids(values: dict[str, Any]) -> dict[str, Any]:
    return {**values, "calls": list(values["calls"].values())}


async def test_late_listener_gets_tokens_of_later_calls(runs_with: RunsFor, chain: Chain) -> None:
    model = Streaming(chain.reply_to)
    runs = runs_with(model)
    events = await collect_events(runs, await start(runs, chain), lambda: len(model.requests) >= 3)
    assert list(texts(events)) == [request.call_id for request in model.requests[3:]]


async def test_tokens_of_an_unreadable_reply_are_reset(runs_with: RunsFor, chain: Chain) -> None:
    def at_first_half(request: Request) -> Any:
        repaired = len(request.messages) > 2
        return '{"steps": [' if request.role == "planner" and not repaired else chain.reply_to(request)

    model = Streaming(at_first_half)
    runs = runs_with(model)
    events = await collect_events(runs, await start(runs, chain))
    bad, repair = model.requests[:2]
    assert [event.call for event in events if isinstance(event, Reset)] == [bad.call_id]
    assert bad.call_id not in texts(events)
    assert repair.call_id in texts(events)


@pytest.mark.parametrize("breaks_at", [1, 3])
async def test_repeated_call_resets_its_streamed_tokens(runs_with: RunsFor, chain: Chain, breaks_at: int) -> None:
    model = Streaming(chain.reply_to, breaks_at=breaks_at)
    runs = runs_with(model)
    thread = await start(runs, chain)
    events: list[Event] = []
    with pytest.raises(ModelUnavailable):
        async for event in runs.run(thread, wants_tokens=always):
            events.append(event)  # noqa: PERF401 - those before the error
    broken = model.requests[-1].call_id
    assert isinstance(events[-1], Reset)
    assert events[-1].call == broken
    again = await collect_events(runs, thread)
    ended = [event.task for event in events + again if isinstance(event, Step) and event.state == "finished"]
    assert len(ended) == len(set(ended)), "a node that failed was reported as finished"
    first = next(event for event in again if not isinstance(event, Step))
    assert isinstance(first, Reset), "another process may have streamed more before it was killed"
    assert first.call == broken
    assert {event.call for event in again if isinstance(event, Reset)} == {broken}
    fresh = runs_with(Streaming(chain.reply_to))
    expected = await collect_events(fresh, await start(fresh, chain))
    assert list(texts(events + again).values()) == list(texts(expected).values())


async def test_subrun_tokens_are_streamed_in_the_outer_run(runs_with: RunsFor, chain: Chain) -> None:
    model = Streaming(lambda request: "Yes" if request.role == "evaluator" else chain.reply_to(request))
    runs = runs_with(model)
    events = await collect_events(runs, thread := await start(runs, chain, "auto"))
    deltas = [event for event in events if isinstance(event, Delta)]
    assert {event.part_of for event in deltas} == {"", thread}
    assert all(event.thread.startswith(f"{thread}.") for event in deltas if event.part_of)
    assert texts(events).keys() == {request.call_id for request in model.requests}
    assert not any(isinstance(event, Reset) for event in events)
