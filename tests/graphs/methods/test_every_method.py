"""Guarantees of every method: budgets, resuming, unreadable replies."""

from dataclasses import replace

import pytest
from all_roles_model import ALONE, AllRolesModel, case_of
from pydantic import create_model
from retro_scenes import FailingOnce
from scenes import Replying, Shelf, example, resolves

from sleuth.graphs.core.context import Budget
from sleuth.graphs.registry import METHODS
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.search.retriever import Query
from sleuth.tools.types import Explanation, Hit


@pytest.mark.parametrize("id", ["q08", pytest.param("q29", marks=pytest.mark.sweep)])
@pytest.mark.parametrize("name", [name for name in ALONE if name != "hybrid-rag"])
async def test_method_stays_within_call_budget(name: str, id: str) -> None:
    chain = example(id)
    full = case_of(name, chain)
    expected = await full.run(chain.question)
    needed = len(full.model.requests)
    for most in range(needed):
        case = case_of(name, chain, budget=Budget(max_calls=most))
        verdict = await case.run(chain.question)
        assert len(case.model.requests) == len(case.state.get("calls", {})) <= most
        assert verdict["status"] == "out_of_budget"
        assert verdict["text"] in ("", expected["text"], *(hop.answer for hop in chain.hops))
        assert all(resolves(citation, chain.passages) for citation in verdict["citations"])
    exactly = case_of(name, chain, budget=Budget(max_calls=needed))
    assert await exactly.run(chain.question) == expected


@pytest.mark.parametrize("name", ALONE)
async def test_method_resumed_after_failure_repeats_no_call(name: str) -> None:
    chain = example("q08")
    whole = case_of(name, chain)
    expected = await whole.run(chain.question)
    for fails_at in range(1, len(whole.model.requests) + 1):
        model = FailingOnce(AllRolesModel(chain).reply_to, fails_at=fails_at)
        case = case_of(name, chain, model=model)
        with pytest.raises(ModelUnavailable):
            await case.run(chain.question)
        assert await case.run(chain.question) == expected
        assert len(set(model.completed)) == len(whole.model.requests)
        repeated = {id for id in model.completed if model.completed.count(id) > 1}
        assert repeated <= model.cut_off, "only calls in flight at the failure may be repeated"
        assert {**case.state, "calls": {}} == {**whole.state, "calls": {}}


@pytest.mark.parametrize("name", [name for name in ALONE if name != "closed-book"])
async def test_search_setting_of_all_methods_applies_to_every_search(name: str) -> None:
    kind = create_model("More", __base__=METHODS[name].settings, where=(str, "tag=more"))
    chain = example("q08")
    case = case_of(name, chain, kind())
    await case.run(chain.question)
    assert {query.where for query in case.retriever.queries} == {"tag=more"}, (
        "make the queries of a method with `settings.query`, which has the search settings of all methods"
    )


EMPTY = "The knowledge graph is empty."


class NotedShelf(Shelf):
    """A shelf whose every hit has the same note."""

    async def search(self, query: Query) -> list[Hit]:
        why = Explanation(parts={}, reasons=(), note=EMPTY)
        return [replace(hit, why=why) for hit in await super().search(query)]


@pytest.mark.parametrize("name", [name for name in ALONE if name != "closed-book"])
async def test_note_of_a_search_is_a_warning_and_nothing_else(name: str) -> None:
    chain = example("q08")
    plain, noted = case_of(name, chain), case_of(name, chain)
    noted.retriever = NotedShelf(plain.retriever.passages, plain.retriever.found)
    assert await noted.run(chain.question) == await plain.run(chain.question)
    warnings = noted.state["warnings"]
    assert warnings.count(EMPTY) == 1
    same = {"calls": {}, "warnings": [line for line in warnings if line != EMPTY]}
    assert {**noted.state, **same} == {**plain.state, "calls": {}}


OPEN = "The question stays open."
LOSSES = {
    "plain-rag": [OPEN],
    "par-rag": [
        "The question is taken as a plan of one step.",
        "Step 1 has no draft.",
        "The draft of step 1 is accepted without a review.",
        OPEN,
    ],
    "retro-rag": [
        "no log-probabilities, so the reply is a plain yes or no",
        "This round has no answer.",
        "This round has no second answer.",
        "The question is taken as its own entity.",
        *(f"Round {at} has no inferences." for at in range(1, 5)),
        "The question itself is searched again.",
    ],
    "ras": [
        "The question is looked up.",
        "Passage q08-1 adds no facts.",
        "The question is answered with what was found.",
        OPEN,
    ],
    "hybrid-rag": [
        "The question counts as static.",
        "The model's own knowledge is missing.",
        "One sample of an expression is missing.",
        "It is summarized.",
        OPEN,
    ],
    "closed-book": [OPEN],
    "iter-retgen": ["This round has no answer."],
    "self-ask": [OPEN],
    "ircot": [OPEN],
    "agent": [OPEN],
    "search-trained": ["The model gave neither a query nor an answer, and was corrected.", OPEN],
}
"""The endings of warnings about replies that cannot be parsed."""


@pytest.mark.parametrize("name", LOSSES)
async def test_method_with_unreadable_replies_is_unknown(name: str) -> None:
    chain = example("q08")
    case = case_of(name, chain, model=Replying(lambda _: "no"))
    assert await case.run(chain.question) == {"status": "unknown", "text": "I found no answer.", "citations": []}
    warnings = case.state["warnings"]
    assert not [loss for loss in LOSSES[name] if not any(warning.endswith(loss) for warning in warnings)]
