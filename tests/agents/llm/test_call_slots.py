"""Calls in flight, which adapt to the speed of the server."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from sleuth.agents.llm.client import CallSlots
from sleuth.tools.errors import ModelTimeout, ModelUnavailable


class Server:
    """A server that answers at most `able` calls at a time within the time-out."""

    def __init__(self, able: int) -> None:
        self.able = able
        self.running = self.most_running = self.timeouts = 0

    async def reply(self) -> str:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        is_slow = self.running > self.able
        try:
            await asyncio.sleep(0.01)
            if is_slow:
                self.timeouts += 1
                raise ModelTimeout("no reply within 120 s")
            return "fine"
        finally:
            self.running -= 1

    async def ask(self, slots: CallSlots, calls: int) -> list[str]:
        self.most_running = self.timeouts = 0
        return await asyncio.gather(*(run(slots, self.reply) for _ in range(calls)))


async def run(slots: CallSlots, call: Callable[[], Awaitable[str]]) -> str:
    while True:
        async with slots.take():
            return await call()


async def test_calls_that_time_out_together_are_repeated_with_fewer_in_flight(
    caplog: pytest.LogCaptureFixture,
) -> None:
    slots, server = CallSlots(8, seconds=0), Server(able=2)
    assert await server.ask(slots, 16) == ["fine"] * 16
    assert server.most_running == 8
    assert await server.ask(slots, 16) == ["fine"] * 16
    assert (server.most_running, server.timeouts) == (2, 0)
    assert "too slow for SLEUTH_CONCURRENCY=8" in caplog.text
    assert "at most 2 at a time" in caplog.text


async def test_call_that_times_out_alone_fails() -> None:
    server = Server(able=0)
    with pytest.raises(ModelTimeout):
        await run(CallSlots(8, seconds=1), server.reply)
    assert server.timeouts == 1


async def test_quick_replies_raise_the_number_again_up_to_the_most() -> None:
    slots, server = CallSlots(4, seconds=120), Server(able=1)
    await server.ask(slots, 8)
    server.able = 8
    await server.ask(slots, 40)
    assert server.most_running == 4


async def test_other_failures_are_raised_and_free_the_slot() -> None:
    slots, server = CallSlots(1, seconds=1), Server(able=1)

    async def fail() -> str:
        raise ModelUnavailable("no server")

    with pytest.raises(ModelUnavailable):
        await run(slots, fail)
    assert await server.ask(slots, 2) == ["fine"] * 2
