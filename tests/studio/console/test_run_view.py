"""Terminal views of steps, histories, answers and sub-runs."""

from collections.abc import AsyncGenerator, Iterable
from io import StringIO
from typing import Any

import pytest
from rich.console import Console, RenderableType

from sleuth.graphs.core.answer import Answer, Citation, Entity, Graph, Relation, Subrun, Threshold, total_cost
from sleuth.graphs.core.events import Step
from sleuth.graphs.core.subrun import new_subrun
from sleuth.graphs.persistence.thread import Thread
from sleuth.graphs.registry import runnable
from sleuth.graphs.runs.history import CheckpointView
from sleuth.studio.cli.commands.runs import _moment_line, _with_subruns
from sleuth.studio.client.sleuth import Event
from sleuth.studio.console.run_view import answer_view, graph_view, show_step, subruns_view, watch

GRAPH = Graph(
    nodes=[Entity(id="oda", name="Oda"), Entity(id="varn", name="[bold] Varn")],
    edges=[Relation(subject="oda", predicate="born in", object="varn", passages=["a#1", "b#2"])],
)
DOUBT = "P(it holds) is 0.20, not above 0.5"


def hop(method: str, why: str, **more: Any) -> Subrun:
    return Subrun(**{**new_subrun(method, why), **more})


FIRST = hop(
    "plain-rag", "first in the order", thread="t.1.a", status="answered", text="1999", confidence=0.2, doubt=DOUBT
)
SECOND = hop("par-rag", f"plain-rag was not accepted: {DOUBT}", thread="t.2.b", status="answered", text="1868")


def answer(**more: Any) -> Answer:
    about = {"thread": "t", "checkpoint": "c", "method": "auto", "question": "?", "status": "answered", "text": "1868"}
    return Answer(**{**about, "cost": total_cost({}), **more})


def recording() -> Console:
    return Console(record=True, width=100, file=StringIO())


def recorded(console: Console) -> list[str]:
    return [line.rstrip() for line in console.export_text().splitlines()]


def lines_of(view: RenderableType) -> list[str]:
    console = recording()
    console.print(view)
    return recorded(console)


def step_details(*steps: tuple[str, dict[str, Any]], method: str) -> list[str]:
    """Return the lines of findings that are printed for finished nodes."""
    console = recording()
    for node, update in steps:
        show_step(Step(thread="t", node=node, state="finished", method=method, update=update), console, verbose=True)
    return [line.strip() for line in recorded(console) if line.startswith("    ")]


def test_graph_view_prints_a_line_per_relation() -> None:
    assert lines_of(graph_view(GRAPH)) == ["graph: 2 entities, 1 relation", "Oda – born in → [bold] Varn  [a#1, b#2]"]


ROUNDS = [
    ("plan", {"rounds": {"1": {"query": "Where?", "passages": []}}}),
    ("retrieve", {"rounds": {"1": {"query": "Where?", "passages": ["x", "y"]}}, "facts": {}}),
    ("structure", {"facts": {"1": {}, "2": {}}}),
]
MISSING = "The search is missing: down"
SOURCES: list[tuple[str, dict[str, Any]]] = [
    ("classify", {"attributes": {"domain": "music", "dynamic": False}}),
    ("retrieve", {"texts": ["x"], "tables": [], "warnings": [MISSING, "else"]}),
    ("calculate", {"calculations": [{"title": "1 + 1", "text": "1 + 1 = 2"}]}),
    ("recall", {"recollection": {"title": "", "text": "[bold] Varn"}}),
]


@pytest.mark.parametrize(
    ("method", "steps", "lines"),
    [
        ("ras", ROUNDS, ["looks up: Where?", "passages: 2", "relations, new or in further passages: 2"]),
        (
            "hybrid-rag",
            SOURCES,
            ["music, static", "texts: 1", f"! {MISSING}", "worked out: 1 + 1 = 2", "recalled: [bold] Varn"],
        ),
        ("retro-rag", [("collate", {"departures": {}, "attempts": {"3": {"answer": ""}}})], ["answer tried: –"]),
    ],
)
def test_step_view_prints_the_findings_of_a_node(
    method: str, steps: Iterable[tuple[str, Any]], lines: list[str]
) -> None:
    assert step_details(*steps, method=method) == lines


PLACE: dict[str, Any] = {"passage": "p", "document": "d.md", "title": "T", "quote": "q", "start": 4, "end": 5}
CALCULATED = {**PLACE, "document": "", "kind": "expression", "reference": "1 + 1"}
LINKED = Citation(**PLACE, why={"passage": "film.md", "name": "Holt"})
SENTENCES = {"text": "A. B.", "citations": [Citation(**PLACE, sentence_ends=[at]) for at in (2, 5)]}
FITTED = Threshold(value=0.5622, by="fitted for small")
SUPPORT = {"score": 0.3, "answerable": 0.4}
ALSO = {"text": "1999", "citations": [Citation(**PLACE)]}


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        ({"citations": [Citation(**CALCULATED)]}, "    worked out: 1 + 1"),
        ({"citations": [Citation(**PLACE, kind="table", reference="row 1")]}, "    T (row 1, d.md, characters 4–5)"),
        ({"citations": [LINKED]}, "    found from film.md by the name “Holt”"),
        (SENTENCES, "│ A. [1] B. [2]"),
        ({"text": "A. B.", "citations": [Citation(**PLACE)]}, "│ A. B. "),
        ({"method": "retro-rag", "threshold": FITTED}, "consistency threshold 0.56: fitted for small"),
        ({"method": "crp-rag", "threshold": FITTED}, "perplexity threshold 0.56: fitted for small"),
        ({"support": SUPPORT}, "The sources support this answer (support 0.30)."),
        ({"support": {**SUPPORT, "weak": True}}, "The sources support this answer only weakly (support 0.30)."),
        ({"support": {**SUPPORT, "weak": True}}, " weakly supported "),
        ({"status": "unknown", "support": SUPPORT}, "The sources do not support an answer (support 0.30)."),
        ({"support": {**SUPPORT, "weak": True, "also": ALSO}}, "Sources also say: 1999"),
        ({"ask_all": 30}, "To ask each of them: sleuth survey '?'"),
        ({}, " not checked "),
        ({"status": "unknown"}, " no answer found "),
        ({"method": "survey"}, " answered "),
        ({"hops": [FIRST, SECOND]}, f"   reason: plain-rag was not accepted: {DOUBT}"),
    ],
)
def test_answer_view_shows(about: dict[str, Any], shown: str) -> None:
    console = Console(record=True, width=150, file=StringIO())
    console.print(answer_view(answer(**about)))
    assert any(shown in f"{line} " for line in recorded(console))


def test_subruns_view_prints_reason_and_thread() -> None:
    lines = [
        "1. plain-rag  answered, P(correct) 0.20, 0 model calls, thread t.1.a",
        "   reason: first in the order",
        "   answer: 1999",
        "2. par-rag  answered, 0 model calls, thread t.2.b",
        f"   reason: plain-rag was not accepted: {DOUBT}",
    ]
    assert lines_of(subruns_view([FIRST, SECOND])) == lines
    lines = lines_of(subruns_view([{**FIRST, "text": "no word " * 100}]))
    assert lines[-1].endswith("no word…")
    assert len(lines) < 8


def test_step_view_prints_the_state_of_a_subrun() -> None:
    chosen, ended = hop("ras", "first in the order"), hop("ras", "", thread="t.1.a", status="unknown")
    states = (chosen, ended, FIRST, {**FIRST, "doubt": "", "confidence": 0.9})
    assert step_details(*(("x", {"hops": {"1": state}}) for state in states), method="auto") == [
        "ras: first in the order",
        "ras: unknown, in thread t.1.a",
        f"plain-rag is not accepted: {DOUBT}",
        "plain-rag is accepted: P(it holds) is 0.90",
    ]


async def events_with_a_subrun() -> AsyncGenerator[Event]:
    for thread, method, node, part_of in (
        ("t", "auto", "plan", ""),
        ("t.1.a", "plain-rag", "retrieve", "t"),
        ("t.1.a", "plain-rag", "answer", "t"),
        ("t", "auto", "act", ""),
    ):
        yield Step(thread=thread, method=method, node=node, state="finished", part_of=part_of)
    yield answer()


@pytest.mark.parametrize(
    ("options", "threads"),
    [
        ({"verbose": True}, ("thread t", "thread t.1.a: plain-rag", "thread t")),
        ({"verbose": True, "in_chat": True}, ("thread t", "thread t.1.a: plain-rag", "thread t")),
        ({}, ("thread t",)),
        ({"in_chat": True}, ()),
    ],
)
async def test_watch_prints_threads_of_subruns_if_verbose(options: dict[str, bool], threads: tuple[str, ...]) -> None:
    console = recording()
    assert await watch(events_with_a_subrun(), console, **options) == answer()
    steps = ["● plan", "● plain-rag retrieve", "● plain-rag answer", "● act"]
    lines = recorded(console)
    assert [line for line in lines if line.startswith("●")] == steps
    assert tuple(line for line in lines if line.startswith("thread")) == threads
    assert len(lines) == len(steps) + len(threads)


def test_show_step_prints_its_findings_in_one_line() -> None:
    steps = {"1": {"planned": "Who?", "question": "Who?", "needs": []}, "2": {"planned": "When?", "question": "When?"}}
    console = Console(record=True, width=40, file=StringIO(), force_terminal=True)
    for update in ({"plan": steps}, {"plan": {"1": {"question": "w" * 90}}}):
        step = Step(thread="t", node="plan", state="finished", method="par-rag", update=update)
        show_step(step, console, verbose=False)
    first, second = recorded(console)
    assert first == "● plan: 1. Who?; 2. When?"
    assert second == f"● plan: 1. {'w' * 28}…"


def test_answer_view_in_a_chat_has_no_threads_or_commands() -> None:
    waiting = answer(
        method="chat", thread="abc", hops=[FIRST], seconds=1.5, asks={"question": "?", "options": ["a", "b"]}
    )
    text = "\n".join(lines_of(answer_view(waiting, in_chat=True)))
    assert not [word for word in ("abc", "t.1.a", "sleuth", "thread", "tokens") if word in text]
    assert "Waiting for your reply (a / b)" in text
    assert text.endswith("0 model calls, 1.5 s")
    assert "sleuth ask REPLY --method chat --thread abc" in " ".join(lines_of(answer_view(waiting)))


def test_runs_list_shows_subruns_below_their_run() -> None:
    def row(id: str, subrun: int = 0, parent: str = "") -> Thread:
        return Thread(id=id, owner="o", method="m", question="q", parent=parent, subrun=subrun)

    newest_first = [row("new"), row("late", 2, "run"), row("run"), row("early", 1, "run"), row("lone", 1, "gone")]
    assert [thread.id for thread in _with_subruns(newest_first)] == ["new", "run", "early", "late", "lone"]


def moment(**more: Any) -> CheckpointView:
    about = {"checkpoint": "1f1e9278-6d00", "parent": "", "step": 3, "node": ["draft"], "next": ["refine"], "at": ""}
    return CheckpointView(**{**about, "changed": {}, "source": "loop", **more})


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({"plan": {"1": {"question": "Who?"}}, "calls": {"x": 1}}, "step 3  draft → refine  1. Who?"),
        ({"question": "Who built it?"}, "step 3  draft → refine  question: Who built it?"),
        ({"wave": ["ce65c780"], "notes": {}}, "step 3  draft → refine  wave"),
        ({"verdict": {"text": "Varn", "citations": []}}, "step 3  draft → refine  verdict: Varn"),
        ({}, "step 3  draft → refine"),
    ],
)
def test_history_has_a_line_per_step_without_hashes(changed: dict[str, Any], line: str) -> None:
    assert _moment_line(moment(changed=changed), runnable("par-rag"), "").plain == line


def test_history_of_a_fork_has_the_id_of_the_checkpoint() -> None:
    assert _moment_line(moment(), runnable("par-rag"), "1f1e9278-6d").plain == "step 3 1f1e9278-6d  draft → refine"


def test_marks_of_an_answer_view_differ_from_those_of_a_document() -> None:
    cited = Citation(passage="p", document="d", title="Light", quote="in 1868", start=0, end=7, sentence_ends=[8])
    lines = "\n".join(lines_of(answer_view(answer(text="1868 [1]", citations=[cited]))))
    assert "1868 [1] [^1]" in lines
    assert "\n[^1] “in 1868”" in lines
