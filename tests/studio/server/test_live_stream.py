"""What a reader is told of replies in the making: in its place, never too much, from the beginning or not at all."""

from sleuth.graphs.core.events import Delta, Reset, Step
from sleuth.studio.server.runs.live_stream import PATIENCE, Ear, Ears, Said


def delta(text: str, call: str = "c", node: str = "draft") -> Delta:
    return Delta(thread="t", node=node, role="drafter", call=call, text=text)


def reset(call: str = "c", node: str = "draft") -> Reset:
    return Reset(thread="t", node=node, role="drafter", call=call)


def finished(node: str) -> Step:
    return Step(thread="t", node=node, state="finished")


def heard(ear: Ear, upto: int = 99) -> list[str]:
    """Words by call; "!" is a reset."""
    return [f"{said.call}:{said.text}" if isinstance(said, Delta) else f"{said.call}!" for said in ear.take(upto)]


def test_words_wait_until_the_events_before_them_were_read() -> None:
    ear = Ear(deaf=False)
    for after, said in ((1, delta("a")), (1, delta("b")), (3, delta("c", "d"))):
        ear.hear(said, after)
    assert ear.bell.is_set()
    assert heard(ear, 0) == []
    assert heard(ear, 2) == ["c:ab"]
    assert heard(ear, 3) == ["d:c"]
    assert heard(ear) == []


def test_words_of_calls_side_by_side_and_what_is_taken_back_keep_their_order() -> None:
    ear = Ear(deaf=False)
    said: list[Said] = [delta("a"), delta("x", "d"), delta("b"), delta("c"), reset(), delta("new")]
    for each in said:
        ear.hear(each, 1)
    assert heard(ear) == ["c:a", "d:x", "c:bc", "c!", "c:new"]


def test_a_reader_that_is_too_slow_loses_its_words_and_hears_no_more_of_these_calls() -> None:
    ear = Ear(deaf=False)
    ear.hear(delta("read"), 1)
    assert heard(ear) == ["c:read"]
    for _ in range(3):
        ear.hear(delta("x" * (PATIENCE // 2)), 1)
    ear.hear(delta("more"), 1)
    ear.hear(delta("other", "d"), 2)
    assert heard(ear) == ["c!", "d:other"]
    ear.hear(reset(), 2)
    ear.hear(delta("anew"), 2)
    assert heard(ear) == ["c!", "c:anew"]


def test_what_waits_for_a_reader_that_never_reads_stays_small() -> None:
    ear = Ear(deaf=False)
    for number in range(2_000):
        ear.hear(delta("x" * 1000, f"call {number % 20}"), number)
    waiting = list(ear.take(9_999))
    assert sum(len(said.text) for said in waiting if isinstance(said, Delta)) <= PATIENCE


def test_who_comes_in_the_middle_is_told_what_was_said_so_far() -> None:
    ears = Ears()
    ears.say("t", delta("In "), after=1)
    ears.say("t", delta("Varn"), after=1)
    ears.say("t", reset("d"), after=1)
    with ears.at("t", deaf=False, again=False) as fresh, ears.at("t", deaf=False, again=True) as back:
        ears.say("t", delta("."), after=1)
        assert heard(fresh) == ["c:In Varn."]
        assert heard(back) == ["c!", "c:In Varn", "d!", "c:."]


def test_a_step_that_has_ended_is_not_told_in_words() -> None:
    ears = Ears()
    ears.say("t", delta("draft"), after=1)
    ears.say("t", delta("plan", "d", "plan"), after=1)
    ears.stands("t", finished("draft"))
    with ears.at("t", deaf=False, again=False) as ear:
        assert heard(ear) == ["d:plan"]
    ears.hush("t")
    with ears.at("t", deaf=False, again=True) as ear:
        assert heard(ear) == []


def test_only_those_who_listen_are_told() -> None:
    ears = Ears()
    assert not ears.listening("t")
    with ears.at("t", deaf=True, again=False) as deaf:
        assert not ears.listening("t")
        with ears.at("t", deaf=False, again=False) as ear:
            assert ears.listening("t")
            assert not ears.listening("another")
            ears.say("t", delta("a"), after=1)
        assert not ears.listening("t")
        assert (heard(deaf), heard(ear)) == ([], ["c:a"])
