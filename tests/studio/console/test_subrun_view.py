"""What people see of `auto`: whose steps they are, why a method had its turn, and which runs belong together."""

from collections.abc import AsyncGenerator
from io import StringIO
from typing import Any

from rich.console import Console

from sleuth.graphs.core.answer import Answer, Subrun, total_cost
from sleuth.graphs.core.events import Step
from sleuth.graphs.core.subrun import new_subrun
from sleuth.graphs.persistence.threads import Thread
from sleuth.studio.cli.commands.runs import _in_families
from sleuth.studio.client.sleuth import Event
from sleuth.studio.console.run_view import answer_view, hops_view, show_step, watch

DOUBT = "P(it holds) is 0.20, not above 0.5"


def hop(method: str, why: str, **more: Any) -> Subrun:
    return Subrun(**{**new_subrun(method, why), **more})


FIRST = hop(
    "plain-rag", "first in the order", thread="t.1.a", status="answered", text="1999", confidence=0.2, doubt=DOUBT
)
SECOND = hop("par-rag", f"plain-rag was not accepted: {DOUBT}", thread="t.2.b", status="answered", text="1868")
ANSWER = Answer(
    thread="t",
    checkpoint="c",
    method="auto",
    question="?",
    status="answered",
    text="1868",
    cost=total_cost({}),
    hops=[FIRST, SECOND],
)


def recording() -> Console:
    return Console(record=True, width=100, file=StringIO())


def shown(console: Console) -> list[str]:
    return [line.rstrip() for line in console.export_text().splitlines()]


def test_each_hop_tells_why_and_where() -> None:
    console = recording()
    console.print(hops_view([FIRST, SECOND]))
    assert shown(console) == [
        "1. plain-rag  answered, P(it holds) 0.20, 0 model calls, thread t.1.a",
        "   because: first in the order",
        "   it said: 1999",
        "2. par-rag  answered, 0 model calls, thread t.2.b",
        f"   because: plain-rag was not accepted: {DOUBT}",
    ]
    console.print(answer_view(ANSWER))
    assert "2. par-rag  answered, 0 model calls, thread t.2.b" in shown(console)


def test_hops_are_in_the_json_of_an_answer_that_has_any() -> None:
    assert [each["thread"] for each in ANSWER.to_json()["hops"]] == ["t.1.a", "t.2.b"]
    alone = Answer(**{**vars(ANSWER), "hops": None})
    assert "hops" not in alone.to_json()


def test_a_turn_is_told_as_it_stands() -> None:
    console = recording()
    chosen, ended = hop("ras", "first in the order"), hop("ras", "", thread="t.1.a", status="unknown")
    for update in (chosen, ended, FIRST, {**FIRST, "doubt": "", "confidence": 0.9}):
        show_step(Step(thread="t", node="x", state="finished", method="auto", update={"hops": {"1": update}}), console)
    assert [line for line in shown(console) if line.startswith("    ")] == [
        "    ras: first in the order",
        "    ras: unknown, in thread t.1.a",
        f"    plain-rag is not accepted: {DOUBT}",
        "    plain-rag is accepted: P(it holds) is 0.90",
    ]


async def test_live_steps_say_whose_they_are() -> None:
    async def events() -> AsyncGenerator[Event]:
        for thread, method, node, part_of in (
            ("t", "auto", "plan", ""),
            ("t.1.a", "plain-rag", "retrieve", "t"),
            ("t.1.a", "plain-rag", "answer", "t"),
            ("t", "auto", "act", ""),
        ):
            yield Step(thread=thread, method=method, node=node, state="finished", part_of=part_of)
        yield ANSWER

    console = recording()
    assert await watch(events(), console) == ANSWER
    assert shown(console) == [
        *("thread t", "● plan"),
        *("thread t.1.a: plain-rag", "● plain-rag retrieve", "● plain-rag answer"),
        *("thread t", "● act"),
    ]


def test_hops_are_listed_below_their_run() -> None:
    def row(id: str, hop: int = 0, parent: str = "") -> Thread:
        return Thread(id=id, owner="o", method="m", question="q", parent=parent, options={"hop": hop} if hop else {})

    newest_first = [row("new"), row("late", 2, "run"), row("run"), row("early", 1, "run"), row("lone", 1, "gone")]
    assert [thread.id for thread in _in_families(newest_first)] == ["new", "run", "early", "late", "lone"]
