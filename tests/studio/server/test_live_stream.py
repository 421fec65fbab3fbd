"""Text deltas for subscribers: in order, bounded, and complete or withdrawn."""

from sleuth.graphs.core.events import Delta, Reset, Step
from sleuth.studio.server.runs.live_stream import MAX_WAITING, StreamItem, Subscriber, Subscribers


def delta(text: str, call: str = "c", node: str = "draft") -> Delta:
    return Delta(thread="t", node=node, role="drafter", call=call, text=text)


def reset(call: str = "c", node: str = "draft") -> Reset:
    return Reset(thread="t", node=node, role="drafter", call=call)


def received(subscriber: Subscriber, up_to: int = 99) -> list[str]:
    """Return the texts by call; "!" is a reset."""
    items = subscriber.take(up_to)
    return [f"{item.call}:{item.text}" if isinstance(item, Delta) else f"{item.call}!" for item in items]


def pushed(*items: tuple[int, StreamItem]) -> Subscriber:
    subscriber = Subscriber(persisted_only=False)
    for after, item in items:
        subscriber.push(item, after)
    return subscriber


def test_deltas_wait_for_the_events_before_them() -> None:
    subscriber = pushed((1, delta("a")), (1, delta("b")), (3, delta("c", "d")))
    assert subscriber.wakeup.is_set()
    assert [received(subscriber, up_to) for up_to in (0, 2, 3, 99)] == [[], ["c:ab"], ["d:c"], []]


def test_deltas_and_resets_of_parallel_calls_keep_their_order() -> None:
    items = [delta("a"), delta("x", "d"), delta("b"), delta("c"), reset(), delta("new")]
    assert received(pushed(*((1, item) for item in items))) == ["c:a", "d:x", "c:bc", "c!", "c:new"]


def test_slow_subscriber_gets_resets_until_the_calls_restart() -> None:
    subscriber = pushed((1, delta("read")))
    assert received(subscriber) == ["c:read"]
    for _ in range(3):
        subscriber.push(delta("x" * (MAX_WAITING // 2)), 1)
    subscriber.push(delta("more"), 1)
    subscriber.push(delta("other", "d"), 2)
    assert received(subscriber) == ["c!", "d:other"]
    subscriber.push(reset(), 2)
    subscriber.push(delta("again"), 2)
    assert received(subscriber) == ["c!", "c:again"]


def test_queue_of_a_subscriber_that_never_reads_is_bounded() -> None:
    subscriber = pushed(*((number, delta("x" * 1000, f"call {number % 20}")) for number in range(2_000)))
    assert sum(len(item.text) for item in subscriber.take() if isinstance(item, Delta)) <= MAX_WAITING


def test_late_subscriber_receives_the_text_so_far() -> None:
    subscribers = Subscribers()
    for item in (delta("In "), delta("Varn"), reset("d")):
        subscribers.publish("t", item, after=1)
    with (
        subscribers.subscribe("t", persisted_only=False, is_reconnect=False) as first,
        subscribers.subscribe("t", persisted_only=False, is_reconnect=True) as reconnected,
    ):
        subscribers.publish("t", delta("."), after=1)
        assert received(first) == ["c:In Varn."]
        assert received(reconnected) == ["c!", "c:In Varn", "d!", "c:."]


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
