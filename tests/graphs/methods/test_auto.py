"""auto: the choice of methods, escalation, and resumed runs that repeat no call."""

import asyncio
from typing import Any
from uuid import UUID

import pytest
from contracts import CONTRACTS, Folder, text_of
from scenes import Case, Chain, Replying, RunsFor, Shelf, finish, passage, plain, resolves, sent
from scenes import ask as ask_with
from scripted_checker import ScriptedChecker
from scripted_model import reply

from sleuth.agents.model import Reply, Request, TokenLogprob
from sleuth.graphs.core.answer import Answer, Citation, Note, Subrun
from sleuth.graphs.core.context import Budget, Services, SubrunRequest
from sleuth.graphs.core.events import Step
from sleuth.graphs.methods.auto import graph as auto
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.runs.history import export_run, fork_run, list_checkpoints
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.graphs.runs.subruns import CheckpointerSubruns
from sleuth.tools.errors import ModelUnavailable, ThreadBusy, UsageError
from sleuth.tools.web_pages.page import PageText

PAR_CALLS = 7
"""Calls of PAR-RAG over a chain of two hops."""

ORDER = {"order": "plain-rag,par-rag"}


class Clerk(Replying):
    """A model for the chain, with given replies of the plain reading and of the check."""

    def __init__(self, chain: Chain, *, read: Any = None, holds: Any = "Yes") -> None:
        super().__init__(self._say)
        self.chain, self.read, self.holds = chain, read, holds

    def _say(self, request: Request) -> Any:
        if request.role == "reader" and self.read is not None:
            return self.read
        if request.role == "evaluator":
            return word(self.holds) if isinstance(self.holds, str) else self.holds
        return self.chain.reply_to(request)

    def roles(self, start: int = 0) -> list[str]:
        return [request.role for request in self.requests[start:]]


def word(text: str) -> Reply:
    """A reply of one token."""
    return reply(text, logprobs=[TokenLogprob(token=text, logprob=-0.1, top={text: -0.1})])


UNKNOWN = {"answerable": False, "answer": "", "citations": []}


def reading(answer: str) -> dict[str, Any]:
    return {"answerable": True, "answer": answer, "citations": []}


async def start(runs: RunService, question: str, **options: Any) -> str:
    return await runs.start(
        RunRequest(question=question, method="auto", values=ORDER | options.pop("values", {}), **options)
    )


async def ask(runs: RunService, question: str, **options: Any) -> Answer:
    return await finish(runs, await start(runs, question, **options))


def hops(answer: Answer) -> list[Subrun]:
    assert answer.hops is not None
    return answer.hops


def turns(answer: Answer) -> list[tuple[str, str]]:
    return [(hop["method"], hop["status"]) for hop in hops(answer)]


async def test_auto_stops_after_accepted_first_answer(runs_with: RunsFor, chain: Chain) -> None:
    model = Clerk(chain)
    runs = runs_with(model)
    answer = await ask(runs, chain.question)
    assert (answer.method, answer.status, answer.text) == ("auto", "answered", "1868")
    assert turns(answer) == [("plain-rag", "answered")]
    assert [request.prompt for request in model.requests] == ["reader/read", "evaluator/support"]
    (hop,) = hops(answer)
    assert (hop["why"], hop["doubt"], hop["confidence"]) == ("first in the order", "", 1.0)
    assert answer.citations == hop["citations"] != []
    assert all(resolves(citation, chain.passages) for citation in answer.citations)
    check = model.requests[1]
    assert (check.input["question"], check.input["answer"]) == (chain.question, "1868")
    assert [source["text"] for source in check.input["sources"]] == [each["quote"] for each in answer.citations]
    assert (check.sampling.max_tokens, check.schema, check.choices) == (1, None, None)
    assert [(note["question"], note["finding"]) for note in answer.notes] == [(chain.question, "1868")]
    nodes = {name: node["calls"] for name, node in answer.cost["nodes"].items()}
    assert (nodes, answer.cost["calls"]) == ({"plain-rag/answer": 1, "verify": 1}, 2)


@pytest.mark.parametrize(
    ("read", "holds", "doubt"),
    [
        (UNKNOWN, "Yes", "it ended as unknown"),
        (reading("1999"), "Yes", "none of its citations hold, 1 must"),
        (None, "No", "P(it holds) is 0.00, not above 0.5"),
        (None, "Perhaps", "P(it holds) is 0.50, not above 0.5"),
    ],
)
async def test_auto_continues_after_rejected_answer(
    runs_with: RunsFor, chain: Chain, read: Any, holds: str, doubt: str
) -> None:
    model = Clerk(chain, read=read, holds=holds)
    answer = await ask(runs_with(model), chain.question)
    assert (answer.status, answer.text) == ("answered", "1868")
    assert [method for method, _ in turns(answer)] == ["plain-rag", "par-rag"]
    plain, second = hops(answer)
    assert plain["doubt"] == doubt
    assert second["why"] == f"plain-rag was not accepted: {doubt}"
    assert second["thread"].startswith(f"{answer.thread}.2.")
    asked = ["reader", *(["evaluator"] if "P(" in doubt else [])]
    assert model.roles()[: len(asked)] == asked
    assert len(model.requests) == len(asked) + PAR_CALLS == answer.cost["calls"]
    assert sum(node["calls"] for node in answer.cost["nodes"].values()) == answer.cost["calls"]
    assert {"plain-rag/answer", "par-rag/plan", "par-rag/review"} <= answer.cost["nodes"].keys()
    in_doubt = [warning for warning in answer.warnings if "not accepted" in warning]
    assert in_doubt == (
        [f"plain-rag had answered {plain['text']!r}, not accepted: {doubt}."] if plain["status"] == "answered" else []
    )


@pytest.mark.parametrize(
    ("values", "demo", "documents", "offered"),
    [
        ({}, False, 4, 4),
        ({}, False, 2, 2),
        ({}, False, 1, None),
        ({"survey_documents": 3}, False, 4, None),
        ({}, True, 4, None),
    ],
)
async def test_auto_offers_a_survey_and_starts_none(
    store: Store, values: dict[str, Any], demo: bool, documents: int, offered: int | None
) -> None:
    def say(request: Request) -> Any:
        return word("Yes") if request.role == "evaluator" else reading("2")

    folder = Folder([passage(each, text_of(each)) for each in list(CONTRACTS)[:documents]])
    runs = RunService(store, Services(model=Replying(say), retriever=folder, demo=demo))
    answer = await ask_with(runs, "How many contracts end in 2027?", "auto", values={**values, "min_citations": 0})
    assert turns(answer) == [("plain-rag", "answered")]
    assert answer.ask_all == answer.to_json().get("ask_all") == offered


@pytest.mark.sweep
async def test_auto_makes_at_most_eight_calls(store: Store) -> None:
    """The model finds nothing, confirms nothing, and searches as long as it may."""

    def say(request: Request) -> Any:
        if request.role == "evaluator":
            return word("Yes" if request.prompt == "evaluator/asks_all" else "No")
        searches = request.input.get("searches", ())
        if request.role == "actor" and len(searches) < 3:
            return {"action": "search", "query": f"search {len(searches)}"}
        quote = {"source": 1, "quote": request.input["sources"][0]["text"][:30]}
        return {"action": "answer", **reading("2"), "known": True, "citations": [quote]}

    folder = Folder([passage(each, text_of(each)) for each in CONTRACTS])
    forms = ["How many {}?", "How much does {} weigh?", "Who owns {}?", "List all {}.", "Which {}s end in 2027?"]
    made = []
    for question in (form.format(f"contract {number}") for number in range(20) for form in forms):
        runs = RunService(store, Services(model=Replying(say), retriever=folder, checker=ScriptedChecker()))
        made.append((await ask_with(runs, question, "auto")).cost["calls"])
    assert (len(made), max(made)) == (100, 8)


@pytest.mark.parametrize("question", ["How many masts has the Alder?", "Who owns the Alder?"])
async def test_auto_searches_for_what_few_passages_contain(store: Store, question: str) -> None:
    def say(request: Request) -> Any:
        if request.prompt == "evaluator/asks_all":
            return word("No")
        return word("Yes") if request.role == "evaluator" else reading("2")

    folder = Folder([passage(each, text_of(each)) for each in CONTRACTS])
    runs = RunService(store, Services(model=Replying(say), retriever=folder))
    answer = await ask_with(runs, question, "auto", values={"min_citations": 0})
    assert turns(answer) == [("plain-rag", "answered")]
    asked = [request.prompt for request in runs.services.model.requests]  # type: ignore[union-attr]
    assert ("evaluator/asks_all" in asked) == question.startswith("How many")
    assert answer.ask_all is None


async def test_auto_continues_after_evidence_does_not_support_an_answer(store: Store, chain: Chain) -> None:
    model = Clerk(chain, read=reading("1999"))
    services = Services(model=model, retriever=Shelf(chain.passages), checker=ScriptedChecker("1868", "1868"))
    answer = await ask(RunService(store, services), chain.question, values={"min_support": 0.2})
    assert turns(answer) == [("plain-rag", "unknown"), ("par-rag", "answered")]
    plain, second = hops(answer)
    assert (plain["doubt"], plain["confidence"]) == ("it ended as unknown", 0)
    assert "evaluator" not in model.roles()
    assert answer.support == second["support"]


@pytest.mark.parametrize(
    ("answerable", "demo", "methods"),
    [
        (0.9, False, [("reader", "answered")]),
        (0.5, False, [("reader", "answered"), ("plain-rag", "answered")]),
        (0.5, True, [("reader", "answered")]),
        (0.05, True, [("reader", "unknown"), ("plain-rag", "unknown"), ("par-rag", "unknown")]),
    ],
)
async def test_auto_asks_no_model_if_the_reader_finds_good_support(
    store: Store, chain: Chain, answerable: float, demo: bool, methods: list[Any]
) -> None:
    model, checker = Clerk(chain), ScriptedChecker("1868", "1868", answerable=answerable)
    services = Services(model=model, retriever=Shelf(chain.passages), checker=checker, demo=demo)
    values = {"min_support": 0.2, **({} if demo else {"fast": True})}
    answer = await ask(RunService(store, services), chain.question, values=values)
    assert turns(answer) == methods
    if answerable >= 0.5:
        assert [request.prompt for request in model.requests] == ["reader/read"] * (len(methods) - 1)
    assert not any("reader had answered" in warning for warning in answer.warnings)
    if answerable == 0.9:
        assert (answer.text, answer.cost["calls"], answer.citations != []) == ("1868", 0, True)
        answer = await ask(RunService(store, services), chain.question)
        assert turns(answer)[0] == ("plain-rag", "answered")


@pytest.mark.parametrize(
    ("order", "replies", "expected"),
    [
        ("plain-rag,par-rag", {"evidence": "1868"}, ["plain-rag", "1868", None]),  # well supported: no model is asked
        ("plain-rag,par-rag", {}, ["plain-rag par-rag", "1868", True]),  # both agree
        ("par-rag,plain-rag", {}, ["par-rag plain-rag", "1868", True]),
        ("par-rag,plain-rag", {"confirmed": "Varn"}, ["par-rag plain-rag", "Varn", True]),
    ],
)
async def test_auto_keeps_the_first_of_unconfirmed_answers(
    store: Store, chain: Chain, order: str, replies: dict[str, str], expected: list[Any]
) -> None:
    def say(request: Request) -> Any:
        if request.role == "reader" and order.startswith("par"):
            quote = request.input["sources"][0]["text"][:40]
            return {"answerable": True, "answer": "Varn", "citations": [{"source": 1, "quote": quote}]}
        if request.prompt == "evaluator/support":
            return word("Yes" if request.input["answer"] == replies.get("confirmed") else "No")
        return chain.reply_to(request)

    checker = ScriptedChecker("1868", replies.get("evidence", "nowhere"))
    runs = RunService(store, Services(model=Replying(say), retriever=Shelf(chain.passages), checker=checker))
    answer = await ask(runs, chain.question, values={"order": order})
    assert answer.support
    methods = " ".join(method for method, _ in turns(answer))
    assert [methods, answer.text, answer.support.get("weak")] == expected
    others = {hop["text"] for hop in hops(answer)} - {answer.text}
    assert bool(hops(answer)[-1]["doubt"]) == (hops(answer)[-1]["text"] in others)
    assert all(any(f"had answered {text!r}, not accepted" in each for each in answer.warnings) for text in others)
    unchecked = await ask(runs, chain.question, values={"order": order, "check_evidence": False})
    assert unchecked.support is None


@pytest.mark.parametrize(("least", "status"), [(1, "unknown"), (0, "answered")])
async def test_auto_refuses_if_no_answer_has_citations(
    runs_with: RunsFor, chain: Chain, least: int, status: str
) -> None:
    values = {"order": "plain-rag", "min_citations": least, "min_confidence": 0}
    answer = await ask(runs_with(Clerk(chain, read=reading("1999"))), chain.question, values=values)
    assert answer.status == status
    assert any("had answered '1999', not accepted" in warning for warning in answer.warnings) == bool(least)


async def test_auto_refuses_if_the_last_method_finds_nothing_after_a_rejected_answer(
    runs_with: RunsFor, chain: Chain
) -> None:
    model = half_known(chain)
    finds_nothing = model.answer

    def say(request: Request) -> Any:
        if request.role == "reader":
            return chain.reply_to(request)
        return word("No") if request.role == "evaluator" else finds_nothing(request)

    model.answer = say
    answer = await ask(runs_with(model), chain.question, values={**REFUSING, "order": "plain-rag,par-rag"})
    assert turns(answer) == [("plain-rag", "answered"), ("par-rag", "unknown")]
    assert (answer.status, answer.citations) == ("unknown", [])
    assert hops(answer)[0]["doubt"] == "P(it holds) is 0.00, not above 0.5"


async def test_auto_does_not_pass_on_rejected_answer(runs_with: RunsFor, chain: Chain) -> None:
    model = Clerk(chain, holds="No")
    answer = await ask(runs_with(model), chain.question)
    assert [list(request.input["known"]) for request in model.requests if request.role == "planner"] == [[]]
    assert chain.question not in [note["question"] for note in answer.notes]
    assert hops(answer)[0]["text"] == "1868", "the warning names it"


REFUSING = {"settings_by_method": {"par-rag": {"max_requeries": 0}}, "order": "plain-rag, par-rag, ras"}


def half_known(chain: Chain) -> Clerk:
    """PAR-RAG answers the first hop only; RAS concludes after its first search."""
    clerk = Clerk(chain, read=UNKNOWN)
    known = clerk.chain.reply_to

    def say(request: Request) -> Any:
        question = request.input.get("question")
        match request.role, request.prompt:
            case "reader", _:
                return UNKNOWN
            case "drafter", _ if question == chain.hops[1].asked:
                return {"answer": "", "citations": []}
            case "planner", "planner/begin" | "planner/next" | "planner/next_with_finding":
                return "[NO_RETRIEVAL]" if request.prompt.endswith("begin") else {"plan": "[SUFFICIENT]"}
            case "extractor", _:
                return {"triples": []}
            case "answerer", "answerer/answer":
                return {"known": False, "answer": ""}
            case "answerer", _:
                return {"facts": [], "answer": "1868", "known": True}
        return known(request)

    clerk.answer = say
    return clerk


async def test_auto_escalates_twice_with_inherited_notes(store: Store, chain: Chain) -> None:
    model, shelf = half_known(chain), Shelf(chain.passages)
    runs = RunService(store, Services(model=model, retriever=shelf))
    answer = await ask(runs, chain.question, values=REFUSING)
    assert [method for method, _ in turns(answer)] == ["plain-rag", "par-rag", "ras"]
    found = (chain.hops[0].asked, chain.hops[0].answer)
    third = await runs.graph(await store.threads.get(hops(answer)[2]["thread"])).aget_state(
        runs.config(await store.threads.get(hops(answer)[2]["thread"]))
    )
    handed = [(note["question"], note["finding"]) for note in third.values["notes"].values()]
    assert handed[0] == found, "without open or uncited findings"
    assert all(finding for _, finding in handed)
    assert found in [(note["question"], note["finding"]) for note in answer.notes]
    assert len([note for note in answer.notes if note["question"] == found[0]]) == 1


@pytest.mark.parametrize(
    ("held", "reason"), [(0, "none of its citations hold, 3 must"), (2, "2 of its citations hold")]
)
def test_auto_counts_the_citations_that_hold(held: int, reason: str) -> None:
    subrun = auto.new_subrun("plain-rag", "first in the order")
    subrun["status"] = "answered"
    citation = Citation(passage="yard", document="yard", title="Yard", quote="1868", start=0, end=4)
    subrun["citations"] = [citation] * held
    assert auto.rejection_reason(subrun, 3).startswith(reason)
    subrun["citations"] = [citation]
    assert auto.rejection_reason(subrun, 3) == "1 of its citations holds, 3 must"


def test_auto_refusal_has_the_nearest_sentence_of_a_subrun() -> None:
    first, last = (auto.new_subrun(method, "next in the order") for method in ("plain-rag", "agent"))
    first |= {"status": "unknown", "text": "I found no answer. The nearest sentence: “It was built in 1868.” (Yard)."}
    last |= {"status": "unknown", "text": "I found no answer."}
    assert auto.best_verdict([first, last], [], cut_short=False)["text"] == first["text"]
    missing = auto.best_verdict([first, last], ["Who built it?"], cut_short=False)
    assert missing["text"] == "I found no answer.\nWhat is missing:\n- Who built it?"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "par-rag: next in the order"),
        ({"thread": "t", "status": "out_of_budget"}, "par-rag: out of budget, in thread t"),
        ({"thread": "t", "confidence": 0.8}, "par-rag is accepted: P(it holds) is 0.80"),
        (
            {"thread": "t", "confidence": 0.2, "doubt": "it ended as unknown"},
            "par-rag is not accepted: it ended as unknown",
        ),
    ],
)
def test_auto_step_states_how_its_subrun_ended(changes: dict[str, Any], line: str) -> None:
    subrun: Any = {**auto.new_subrun("par-rag", "next in the order"), **changes}
    assert auto.summarize({"hops": {"1": subrun}})[0] == line


def test_auto_hands_on_only_findings_with_a_passage() -> None:
    subrun = auto.new_subrun("plain-rag", "first in the order")
    subrun["notes"] = ["cited", "uncited", "open"]
    findings = {"own": ("", []), "cited": ("1868", ["yard"]), "uncited": ("1868", []), "open": ("", ["yard"])}
    notes = {
        key: Note(question="?", finding=finding, passages=passages, citations=[])
        for key, (finding, passages) in findings.items()
    }
    assert list(auto.inherited_notes(notes, [subrun])) == ["own", "cited"]


async def test_auto_subruns_search_given_pages(store: Store, chain: Chain) -> None:
    shelf = Shelf(chain.passages)
    runs = RunService(store, Services(model=Clerk(chain, read=UNKNOWN), retriever=shelf))
    page = PageText(id="yard", name="yard", text="Trevandle & Ruske was founded in 1868.")
    answer = await ask(runs, chain.question, pages=[page])
    assert shelf.queries == []
    for hop in await store.threads.subruns_of(answer.thread):
        assert hop.options.pages == (await store.threads.get(answer.thread)).options.pages


async def test_auto_refusal_lists_missing_findings(runs_with: RunsFor, chain: Chain) -> None:
    model = half_known(chain)
    answer = await ask(runs_with(model), chain.question, values={**REFUSING, "order": "plain-rag,par-rag"})
    assert (answer.status, answer.citations) == ("unknown", [])
    assert answer.text.splitlines() == [
        "I found no answer.",
        "What is missing:",
        f"- {chain.hops[1].asked}",
    ]
    assert [note["finding"] for note in answer.notes] == [chain.hops[0].answer, ""]


@pytest.mark.parametrize("most", [1, 2, 8, 11, *(pytest.param(n, marks=pytest.mark.sweep) for n in (3, 5, 10))])
async def test_auto_budget_covers_all_subruns(runs_with: RunsFor, chain: Chain, most: int) -> None:
    model = Clerk(chain, holds="No")
    answer = await ask(runs_with(model), chain.question, budget=Budget(max_calls=most))
    needed = 2 + PAR_CALLS
    assert len(model.requests) == answer.cost["calls"] <= most
    assert answer.status == ("answered" if most >= needed else "out_of_budget")
    assert answer.text == "1868", "the answer in doubt is the best so far"
    assert len(turns(answer)) == (1 if most <= 2 else 2), "no method begins without room for a call"
    if most == 8:
        assert turns(answer)[1] == ("par-rag", "out_of_budget"), "in the middle of the second hop"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"order": "plain-rag,parrag"}, "'parrag' is none of plain-rag, par-rag"),
        ({"order": "auto"}, "'auto' asks other methods itself"),
        ({"order": "ras,ras"}, "may be named once"),
        (
            {"settings_by_method": '{"par-rag": {"corse_k": 5}}'},
            "no setting of par-rag 'corse_k'. Did you mean coarse_k",
        ),
        ({"settings_by_method": '{"parrag": {}}'}, "no method 'parrag'. Did you mean par-rag"),
        ({"settings_by_method": "{"}, "settings_by_method: .*json"),
        ({"min_confidence": "1"}, "min_confidence: .* less than 1"),
    ],
)
async def test_auto_refuses_invalid_settings_before_the_run(
    runs: RunService, values: dict[str, str], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        await runs.start(RunRequest(question="?", method="auto", values=values))
    assert await runs.store.threads.list_newest() == []


# Steps, threads, resuming


async def test_auto_streams_steps_of_subruns(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(Clerk(chain, read=UNKNOWN))
    id = await start(runs, chain.question)
    told = [event async for event in runs.run(id) if isinstance(event, Step) and event.state == "finished"]
    steps = [(step.method, step.node) for step in told]
    assert steps[:5] == [
        ("auto", "plan"),
        ("plain-rag", "retrieve"),
        ("plain-rag", "answer"),
        ("auto", "act"),
        ("auto", "verify"),
    ]
    assert steps[6] == ("par-rag", "plan")
    assert {(step.thread == id, step.part_of) for step in told} == {(True, ""), (False, id)}
    assert len({step.thread for step in told}) == 3


async def test_auto_subruns_name_their_parent(runs_with: RunsFor, chain: Chain) -> None:
    runs = runs_with(Clerk(chain, read=UNKNOWN))
    answer = await ask(runs, chain.question, budget=Budget(max_calls=40))
    moments = {moment.checkpoint: moment for moment in await list_checkpoints(runs, answer.thread)}
    threads = await runs.store.threads.subruns_of(answer.thread)
    assert [(thread.id, thread.method) for thread in threads] == [
        (hop["thread"], hop["method"]) for hop in hops(answer)
    ]
    for number, thread in enumerate(threads, start=1):
        assert (thread.part_of, thread.subrun, thread.state) == (answer.thread, number, "done")
        assert moments[thread.parent_checkpoint].next == ["act"]
        assert (await runs.answer(thread.id)).status == hops(answer)[number - 1]["status"]
    exported = await export_run(runs, answer.thread)
    assert [hop["thread"]["id"] for hop in exported["hops"]] == [thread.id for thread in threads]


class Failing(Clerk):
    """Is down at one call, once."""

    fails_at = 0

    async def call(self, request: Request) -> Reply:
        if len(self.requests) + 1 == self.fails_at:
            self.fails_at = 0
            raise ModelUnavailable("The server is down: start it.")
        return await super().call(request)


@pytest.mark.sweep
async def test_auto_resumed_after_failure_repeats_no_call(runs_with: RunsFor, chain: Chain) -> None:
    model = Clerk(chain, holds="No")
    expected = await ask(runs_with(model), chain.question)
    for at in (1, 2, 3, 6, 2 + PAR_CALLS):
        failing = Failing(chain, holds="No")
        failing.fails_at = at
        runs = runs_with(failing)
        id = await start(runs, chain.question)
        with pytest.raises(ModelUnavailable):
            await finish(runs, id)
        stopped = await runs.store.threads.subruns_of(id)
        assert (await runs.store.threads.get(id)).state == "failed"
        answer = await finish(runs, id)
        assert sent(failing.requests) == sent(model.requests)
        ids = [request.call_id for request in failing.requests]
        assert len(ids) == len(set(ids))
        assert (answer.text, answer.cost, answer.warnings) == (expected.text, expected.cost, expected.warnings)
        threads = await runs.store.threads.subruns_of(id)
        assert [thread.id for thread in threads[: len(stopped)]] == [thread.id for thread in stopped]
        assert len(threads) == 2


async def test_auto_subrun_is_locked(runs_with: RunsFor, chain: Chain) -> None:
    model = Failing(chain, read=UNKNOWN)
    model.fails_at = 4
    runs = runs_with(model)
    id = await start(runs, chain.question)
    with pytest.raises(ModelUnavailable):
        await finish(runs, id)
    hop = (await runs.store.threads.subruns_of(id))[1]
    async with runs.store.locks.hold(hop.id):
        with pytest.raises(ThreadBusy, match=f"Thread {hop.id} is being run"):
            await finish(runs, id)
    assert (await finish(runs, hop.id)).text == "1868", "by hand, as any run"
    asked = len(model.requests)
    assert (await finish(runs, id)).text == "1868"
    assert len(model.requests) == asked == 1 + PAR_CALLS


def in_memory(case: Case) -> CheckpointerSubruns:
    async def announce(thread: str, hop: SubrunRequest) -> None:
        assert thread and hop.parent == "1"

    return CheckpointerSubruns(saver=case.saver, context=case._context(), profile="default", announce=announce)


async def test_auto_subrun_in_other_checkpointer_resumes(chain: Chain) -> None:
    model = Failing(chain, holds="No")
    model.fails_at = 6
    case = plain([], chain.passages, auto.Settings(**ORDER))
    case.graph, case.model = auto.graph, model
    with pytest.raises(ModelUnavailable):
        await case.run(chain.question, subruns=in_memory(case))
    verdict = await case.run(chain.question, subruns=in_memory(case))
    assert (verdict["status"], verdict["text"]) == ("answered", "1868")
    ids = [request.call_id for request in model.requests]
    assert len(ids) == len(set(ids)) == 2 + PAR_CALLS
    assert {UUID(hop["thread"]).version for hop in case.state["hops"].values()} == {5}


async def test_auto_cancelled_cancels_subrun(runs_with: RunsFor, chain: Chain) -> None:
    hanging, clerk = asyncio.Event(), Clerk(chain, read=UNKNOWN)

    class Hanging(Clerk):
        async def call(self, request: Request) -> Reply:
            if request.role == "drafter":
                hanging.set()
                await asyncio.Event().wait()
            return await super().call(request)

    stuck = Hanging(chain, read=UNKNOWN)
    runs = runs_with(stuck)
    id = await start(runs, chain.question)
    running = asyncio.create_task(finish(runs, id))
    await hanging.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [thread.state for thread in await runs.store.threads.subruns_of(id)] == ["done", "interrupted"]
    assert (await finish(runs_with(clerk), id)).text == "1868"
    assert len(stuck.requests) + len(clerk.requests) == 1 + PAR_CALLS


async def test_auto_fork_before_subrun_gets_new_thread(runs_with: RunsFor, chain: Chain) -> None:
    model = Clerk(chain, read=UNKNOWN)
    runs = runs_with(model)
    first = await ask(runs, chain.question)
    moments = await list_checkpoints(runs, first.thread)
    before_second = next(moment for moment in moments if moment.next == ["act"])
    asked = len(model.requests)
    await fork_run(runs, first.thread, at=before_second.checkpoint)
    again = await finish(runs, first.thread)
    assert (again.text, again.cost) == (first.text, first.cost)
    assert len(model.requests) - asked == PAR_CALLS
    (plain, old), (same, new) = ([hop["thread"] for hop in hops(answer)] for answer in (first, again))
    assert plain == same
    assert old != new
    assert len(await runs.store.threads.subruns_of(first.thread)) == 3
    assert (await runs.answer(old)).text == "1868"
