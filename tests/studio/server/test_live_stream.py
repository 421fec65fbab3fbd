"""Text deltas for subscribers: in order, and complete or withdrawn."""

from collections.abc import Iterator

import pytest

from sleuth.graphs.core.events import Delta, Reset, Step
from sleuth.studio.server.runs.live_stream import StreamItem, Subscriber, Subscribers


def delta(text: str, call: str = "c", node: str = "draft") -> Delta:
    return Delta(thread="t", node=node, role="drafter", call=call, text=text)


def reset(call: str = "c", node: str = "draft") -> Reset:
    return Reset(thread="t", node=node, role="drafter", call=call)


def received(subscriber: Subscriber, up_to: int = 99) -> list[str]:
    """Return the texts by call; "!" is a reset."""
    items = subscriber.take(up_to)
    return [f"{item.call}:{item.text}" if isinstance(item, Delta) else f"{item.call}!" for item in items]


@pytest.fixture
def subscribers() -> Subscribers:
    return Subscribers()


@pytest.fixture
def subscriber(subscribers: Subscribers) -> Iterator[Subscriber]:
    with subscribers.subscribe("t", persisted_only=False, is_reconnect=False) as made:
        yield made


def publish(subscribers: Subscribers, *items: StreamItem, after: int = 1) -> None:
    for item in items:
        subscribers.publish("t", item, after=after)


def test_deltas_wait_for_the_events_before_them(subscribers: Subscribers, subscriber: Subscriber) -> None:
    publish(subscribers, delta("a"), delta("b"))
    publish(subscribers, delta("c", "d"), after=3)
    assert subscriber.wakeup.is_set()
    assert [received(subscriber, up_to) for up_to in (0, 2, 3, 99)] == [[], ["c:ab"], ["d:c"], []]


def test_deltas_of_each_call_keep_their_order(subscribers: Subscribers, subscriber: Subscriber) -> None:
    publish(subscribers, delta("a"), delta("x", "d"), delta("b"))
    assert received(subscriber) == ["c:a", "d:x", "c:b"]
    publish(subscribers, delta("c"), reset(), delta("new"), delta("y", "d"))
    assert received(subscriber) == ["c:c", "c!", "c:new", "d:y"]
    assert received(subscriber) == []


def test_text_of_a_finished_step_is_received_before_its_event(subscribers: Subscribers, subscriber: Subscriber) -> None:
    publish(subscribers, delta("draft"))
    subscribers.finish_step("t", Step(thread="t", node="draft", state="finished"))
    subscribers.close("t")
    assert received(subscriber) == ["c:draft"]
    publish(subscribers, delta("next", "d"), after=2)
    assert received(subscriber) == ["d:next"]


def test_late_subscriber_receives_the_text_so_far() -> None:
    subscribers = Subscribers()
    for item in (reset("d"), delta("In "), delta("Varn")):
        subscribers.publish("t", item, after=1)
    with (
        subscribers.subscribe("t", persisted_only=False, is_reconnect=False) as first,
        subscribers.subscribe("t", persisted_only=False, is_reconnect=True) as reconnected,
    ):
        subscribers.publish("t", delta("."), after=1)
        assert received(first) == ["c:In Varn."]
        assert received(reconnected) == ["d!", "c!", "c:In Varn."]


def test_text_of_a_finished_step_or_run_is_removed() -> None:
    subscribers = Subscribers()
    subscribers.publish("t", delta("draft"), after=1)
    subscribers.publish("t", delta("plan", "d", "plan"), after=1)
    subscribers.finish_step("t", Step(thread="t", node="draft", state="finished"))
    with subscribers.subscribe("t", persisted_only=False, is_reconnect=False) as subscriber:
        assert received(subscriber) == ["d:plan"]
    subscribers.close("t")
    with subscribers.subscribe("t", persisted_only=False, is_reconnect=True) as subscriber:
        assert received(subscriber) == []


def test_only_subscribers_that_want_deltas_receive_them() -> None:
    subscribers = Subscribers()
    with subscribers.subscribe("t", persisted_only=True, is_reconnect=False) as persisted_only:
        assert not subscribers.want_deltas("t")
        with subscribers.subscribe("t", persisted_only=False, is_reconnect=False) as subscriber:
            assert subscribers.want_deltas("t")
            assert not subscribers.want_deltas("another")
            subscribers.publish("t", delta("a"), after=1)
        assert not subscribers.want_deltas("t")
        assert (received(persisted_only), received(subscriber)) == ([], ["c:a"])
