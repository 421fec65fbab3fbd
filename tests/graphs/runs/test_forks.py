"""A fork of any checkpoint of any method into any other one runs, and what was found out is not looked up again."""

from dataclasses import dataclass, field
from typing import Any

import pytest
from all_roles_model import ALONE, AT_ONCE, AllRolesModel, finds
from hashing_embedder import HashingEmbedder
from scenes import Chain, Replying, Shelf, ask, example, finish, sure

from sleuth.agents.model import Request
from sleuth.graphs.core.answer import Note
from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.registry import METHODS
from sleuth.graphs.runs.history import fork_run, list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import RunError
from sleuth.tools.text.normalization import comparison_key

PLAYED = [name for name in ALONE if name != "closed-book"]
"""Sub-runs of a method that delegates are runs of their own; closed-book finds nothing out; reader asks no model."""
DELEGATING = [name for name, method in METHODS.items() if method.delegates]
PAIRS = [(PLAYED[at], PLAYED[at - step]) for step in (1, 2) for at in range(len(PLAYED))]
"""Each method twice as the source and twice as the target: a fork reads nothing else of either."""


@dataclass
class Table:
    """A store of runs over a chain, in which everybody knows their part; `asks` and `searches` are those of a run."""

    store: Store
    chain: Chain
    model: Replying = field(init=False)
    shelf: Shelf = field(init=False)

    def runs(self, method: str) -> RunService:
        """With a model and a shelf that nobody has asked yet, and no triples; what searches once finds all."""
        self.model = Replying(AllRolesModel(self.chain).reply_to)
        self.shelf = finds(self.chain, at_once=method in AT_ONCE)
        services = Services(model=self.model, retriever=self.shelf, embedder=HashingEmbedder())
        return RunService(self.store, services)

    async def play(self, method: str) -> str:
        """A run from scratch; its thread."""
        return (await ask(self.runs(method), self.chain.question, method)).thread


@pytest.fixture
def table(store: Store) -> Table:
    return Table(store, example("q08"))


@pytest.mark.parametrize("method", [*PLAYED, *DELEGATING])
async def test_named_branch_has_a_thread_and_an_answer_of_its_own(table: Table, method: str) -> None:
    id = await table.play(method)
    first, asked = await table.runs(method).answer(id), len(table.model.requests)
    moments = [moment for moment in await list_checkpoints(table.runs(method), id) if moment.next]
    for number, moment in enumerate([moments[0], moments[len(moments) // 2], moments[-2]]):
        runs = table.runs(method)
        branch = await fork_run(runs, id, at=moment.checkpoint, name=f"branch-{number}")
        assert branch["thread"] == f"branch-{number}"
        again = await finish(runs, branch["thread"])
        assert (again.status, again.text, again.citations) == (first.status, first.text, first.citations)
        assert again.cost["calls"] == first.cost["calls"]
        assert len(table.model.requests) <= first.cost["calls"]
        assert await runs.answer(id) == first
        thread = await runs.store.threads.get(branch["thread"])
        assert (thread.parent, thread.parent_checkpoint, thread.subrun) == (id, moment.checkpoint, 0)
    assert asked == 0
    with pytest.raises(RunError, match="used already"):
        await fork_run(table.runs(method), id, at=moments[0].checkpoint, name=id)


async def test_named_branch_has_changes(table: Table) -> None:
    id = await table.play("plain-rag")
    runs = table.runs("plain-rag")
    first = (await list_checkpoints(runs, id))[-2].checkpoint
    branch = await fork_run(runs, id, at=first, changes={"question": "Another?"}, name="other")
    assert (await list_checkpoints(runs, branch["thread"]))[0].changed["question"] == "Another?"


def hasty(finding: str, everyone: AllRolesModel, request: Request) -> Any:
    """Takes a finding for the answer to the whole question, in every role that can conclude."""
    conclusion = {"answerable": True, "known": True, "answer": finding, "reason": "", "citations": [], "facts": []}
    by_prompt = {
        "reasoner/think": f"So the answer is: {finding}.",
        "planner/plan": [{"question": request.input.get("question"), "action": "Answer", "needs": []}],
        "planner/follow_up": {"follow_up": "No", "answer": finding},
        "planner/next": {"plan": "[SUFFICIENT]"},
        "planner/next_with_finding": {"finding": "", "facts": [], "plan": "[SUFFICIENT]"},
        "evaluator/support": 0.9,
    }
    by_role = {
        "actor": {"action": "answer", "answer": finding, "citations": []},
        "verifier": sure(finding),
        **dict.fromkeys(("reader", "reasoner", "answerer", "integrator", "resolver", "drafter"), conclusion),
    }
    said = by_prompt.get(request.prompt, by_role.get(request.role))
    return everyone.reply_to(request) if said is None else said


async def fork_into(table: Table, method: str, at: str, **changes: Any) -> tuple[RunService, str]:
    """A run of PAR-RAG forked into a method at its `first` finding or its `last` checkpoint; not yet run."""
    id = await table.play("par-rag")
    runs = table.runs(method)
    moments = await list_checkpoints(runs, id)
    found = [moment for moment in reversed(moments) if len(moment.changed.get("notes", {})) == 1]
    moment = found[0] if at == "first" else moments[0]
    return runs, (await fork_run(runs, id, at=moment.checkpoint, into=method, changes=changes))["thread"]


@pytest.mark.parametrize(
    "method", [*DELEGATING, *(name for name in ALONE if name not in ("par-rag", "search-trained"))]
)
async def test_fork_from_an_intermediate_step_searches_for_the_question(table: Table, method: str) -> None:
    runs, thread = await fork_into(table, method, "first")
    everyone, finding = AllRolesModel(table.chain), table.chain.hops[0].answer
    table.model.answer = lambda request: hasty(finding, everyone, request)
    await finish(runs, thread)
    if method == "closed-book":
        assert [each.prompt for each in table.model.requests] == ["answerer/from_memory"]
    else:
        assert table.shelf.queries[0].text == table.chain.question


async def test_fork_from_the_final_answer_searches_for_the_question(table: Table) -> None:
    runs, thread = await fork_into(table, "plain-rag", "last")
    answer = await finish(runs, thread)
    assert (answer.text, table.shelf.queries[0].text) == (table.chain.answer, table.chain.question)
    assert table.chain.question not in [each["question"] for each in answer.notes[:-1]]


async def test_fork_with_another_question_does_not_take_the_old_answer(table: Table) -> None:
    runs, thread = await fork_into(table, "plain-rag", "last", question="Who painted the sign?")
    await finish(runs, thread)
    assert [query.text for query in table.shelf.queries] == ["Who painted the sign?"]


async def test_fork_with_the_question_of_a_step_searches_for_it(table: Table) -> None:
    asked = table.chain.hops[0].asked
    runs, thread = await fork_into(table, "plain-rag", "first", question=asked.rstrip("?").upper())
    await finish(runs, thread)
    assert len(table.shelf.queries) == 1


async def test_fork_into_another_method_merges_changed_notes(table: Table) -> None:
    added: Note = {"question": "Who painted the sign?", "finding": "Ada Pell", "passages": []}
    runs, thread = await fork_into(table, "plain-rag", "first", notes={"own": added})
    forked = await runs.store.threads.get(thread)
    state = await runs.state(forked)
    questions = [found["question"] for found in state.values["notes"].values()]
    assert questions == [table.chain.hops[0].asked, "Who painted the sign?"]


@pytest.mark.parametrize("method", PLAYED)
@pytest.mark.sweep
async def test_fork_accepts_any_state_of_a_run(table: Table, method: str) -> None:
    id, runs = await table.play(method), table.runs(method)
    thread = await runs.store.threads.get(id)
    for moment in (await list_checkpoints(runs, id))[
        :-2
    ]:  # before the first node a fork takes the question and notes alone
        values = (await runs.state(thread, moment.checkpoint)).values
        await fork_run(runs, id, at=moment.checkpoint, changes=values)


@pytest.mark.parametrize(("method", "into"), PAIRS)
@pytest.mark.sweep
async def test_fork_into_any_other_method_continues_with_its_notes(table: Table, method: str, into: str) -> None:
    id, seen = await table.play(method), []
    for moment in await list_checkpoints(table.runs(method), id):
        runs = table.runs(into)
        thread = (await fork_run(runs, id, at=moment.checkpoint, into=into))["thread"]
        forked = await runs.store.threads.get(thread)
        notes = list((await runs.state(forked)).values["notes"].values())
        if notes in seen:  # the run would be the same
            continue
        seen.append(notes)
        answer = await finish(runs, thread)
        assert (answer.method, answer.status, answer.text) == (into, "answered", table.chain.answer), (
            f"if {into} searches for the whole question only, add it to AT_ONCE in all_roles_model.py"
        )
        known = {comparison_key(each["question"]) for each in notes if each["finding"]}
        assert not known & {comparison_key(query.text) for query in table.shelf.queries}, "what is known was looked up"
        assert table.shelf.queries, "a sub-question's finding is no answer"
