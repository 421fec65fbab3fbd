"""PAR-RAG's trajectories: nodes in order, prompts asked, queries made, and what comes of them."""

from dataclasses import replace
from typing import Any

import pytest
from scenes import Replying, example, par, passage
from scripted_model import ScriptedModel

from sleuth.graphs.core.context import Budget
from sleuth.graphs.methods.par_rag.graph import Settings, summarize
from sleuth.tools.errors import ModelUnavailable
from sleuth.tools.types import Passage

PAPER = Settings().as_in_paper()
REVIEWED = Settings(skip_supported=False)
"""Settings under which every draft is reviewed."""

STEP = ["retrieve_coarse", "draft", "retrieve_fine", "review"]
FIRST = ["plan", *STEP]
NEXT = ["refine", *STEP]
PASS = {"status": "PASS"}


def unsure(question: str, earlier_step: int | None = None) -> dict[str, Any]:
    return {"status": "UNCONFIDENT", "question": question, "earlier_step": earlier_step}


def draft(answer: str, *quotes: tuple[int, str]) -> dict[str, Any]:
    return {"answer": answer, "citations": [{"source": source, "quote": quote} for source, quote in quotes]}


def plan(*steps: tuple[str, list[int]]) -> list[dict[str, Any]]:
    return [{"question": question, "needs": needs} for question, needs in steps]


@pytest.mark.parametrize("settings", [REVIEWED, Settings(review=False)], ids=["reviewed", "not reviewed"])
async def test_par_rag_cites_sentence_with_answer(settings: Settings) -> None:
    replies = [ONE, draft("30 m", (1, "The tower stands")), *([PASS] if settings.review else []), {"known": False}]
    case = par(replies, BOTH, settings)
    await case.run("?")
    assert [each["quote"] for each in case.state["drafts"]["1"]["citations"]] == ["The tower stands"]
    assert [each["quote"] for each in case.state["notes"]["1"]["citations"]] == ["It is 30 m high."]


TOWER = passage("tower", "The tower stands in Varn. It is 30 m high. Nobody lives there.")
BRIDGE = passage("bridge", "The bridge is in Ostel.\nIt was built in 1802 by Ida Moll.", at=7)
BOTH = [TOWER, BRIDGE]
ONE = plan(("How high is the tower?", []))


async def test_par_rag_revised_answer_replaces_draft() -> None:
    revised = {"status": "REVISED", **draft("30 m", (1, "it is  30 M HIGH"))}
    case = par([ONE, draft("40 m"), revised, {"known": True, "answer": "30 m [1]"}], BOTH)
    verdict = await case.run("?")
    citation = {"passage": "tower", "document": "doc-tower", "title": "Tower", "quote": "It is 30 m high"}
    assert verdict == {"status": "answered", "text": "30 m", "citations": [{**citation, "start": 126, "end": 141}]}
    assert case.state["drafts"]["1"]["answer"] == "40 m"
    assert case.state["notes"]["1"]["finding"] == "30 m"


async def test_par_rag_uncited_revision_keeps_draft() -> None:
    revised = {"status": "REVISED", **draft("50 m", (1, "it is 50 m high"), (9, "It is 30 m high"))}
    case = par([ONE, draft("30 m", (1, "30 m")), revised, {"known": True, "answer": "30 m"}], BOTH, REVIEWED)
    await case.run("?")
    assert case.state["notes"]["1"]["finding"] == "30 m"
    assert case.state["warnings"] == [
        "dropped a citation of source 1: neither its quote nor the answer is in tower",
        "dropped a citation of source 9: no such source was shown",
        "The revised answer of step 1 cites no retrieved passage; keeping the draft.",
    ]


async def test_par_rag_unconfident_review_asks_new_question() -> None:
    case = par(
        [ONE, draft("?"), unsure("What height has it?"), draft("30 m"), PASS, {"known": True, "answer": "x"}], BOTH
    )
    await case.run("?")
    assert case.nodes == [*FIRST, *STEP, "answer"]
    assert [query.text for query in case.retriever.queries][2:] == ["What height has it?", "What height has it? 30 m"]
    assert case.state["notes"]["1"]["question"] == "What height has it?"
    assert case.state["requeries"] == {"1": 1}


@pytest.mark.parametrize("most", [0, 1, 3])
async def test_par_rag_requeries_are_bounded(most: int) -> None:
    again = [said for at in range(most + 1) for said in (draft(f"draft {at}"), unsure(f"question {at}?"))]
    case = par([ONE, *again, {"known": False}], BOTH, Settings(max_requeries=most))
    await case.run("?")
    assert case.nodes == [*FIRST, *STEP * most, "answer"]
    note = case.state["notes"]["1"]
    assert (note["finding"], note["remark"]) == (f"draft {most}", "the review was not confident")


RETURNING = plan(("Where is the tower?", []), ("How many live in #1?", [1]), ("Where is the bridge?", []))


def returning(*, blame: int | None) -> list[Any]:
    """Two parallel steps, then one that builds on the first and whose review rejects an earlier step."""
    return [
        RETURNING,
        *(draft("Varm", (1, "Varm")), draft("Ostel", (2, "in Ostel"))),
        *(PASS, PASS),
        {"question": "How many live in Varm?"},
        *(draft("nobody"), unsure("In which town is the tower?", blame)),
    ]


async def test_par_rag_review_reopens_earlier_step() -> None:
    case = par(
        [
            *returning(blame=1),
            *(draft("Varn", (1, "stands in Varn")), PASS),
            {"question": "How many live in Varn?"},
            *(draft("Nobody", (1, "Nobody lives there")), PASS),
            {"known": True, "answer": "nobody"},
        ],
        BOTH,
        REVIEWED,
    )
    verdict = await case.run("?")
    assert case.nodes == [*FIRST, *NEXT, *STEP, *NEXT, "answer"]
    notes = case.state["notes"]
    assert {key: note["finding"] for key, note in notes.items()} == {"1": "Varn", "2": "Nobody", "3": "Ostel"}
    assert notes["1"]["question"] == "In which town is the tower?"
    assert notes["1"]["remark"] == "asked again: the review of step 2 doubted 'Varm'"
    assert "remark" not in notes["2"] and "remark" not in notes["3"]
    assert {citation["passage"] for citation in verdict["citations"]} == {"tower", "bridge"}
    case.model.done()  # type: ignore[union-attr]


async def test_par_rag_returns_are_bounded() -> None:
    case = par(
        [
            *returning(blame=1),
            *(draft("Varn"), PASS, {"question": "How many?"}, draft("nobody"), unsure("Where?", 1)),
            *(draft("some"), PASS, {"known": False}),
        ],
        BOTH,
        Settings(max_requeries=2),
    )
    await case.run("?")
    assert case.nodes == [*FIRST, *NEXT, *STEP, *NEXT, *STEP, "answer"]
    assert case.state["returns"] == 1
    assert case.state["notes"]["1"]["finding"] == "Varn"
    assert case.state["notes"]["2"]["question"] == "Where?"


@pytest.mark.parametrize(("blame", "settings"), [(None, Settings()), (7, Settings()), (1, Settings(max_returns=0))])
async def test_par_rag_without_returns_requeries_the_step(blame: int | None, settings: Settings) -> None:
    case = par([*returning(blame=blame), draft("Nobody"), PASS, {"known": False}], BOTH, settings)
    await case.run("?")
    assert case.nodes == [*FIRST, *NEXT, *STEP, "answer"]
    assert case.state["notes"]["1"]["finding"] == "Varm"
    assert case.state["notes"]["2"]["question"] == "In which town is the tower?"
    assert "returns" not in case.state


INDEPENDENT = plan(("Where is the tower?", []), ("Where is the bridge?", []), ("Are #1 and #2 the same?", [1, 2]))


def independent(request: Any) -> Any:
    match request.prompt:
        case "planner/plan" | "planner/plan_in_order":
            return INDEPENDENT
        case "refiner/refine":
            return {
                "question": "Are Varn and Ostel the same?"
                if "#" in request.input["question"]
                else request.input["question"]
            }
        case "drafter/draft":
            return draft("Varn", (1, "Varn")) if "tower" in request.input["question"] else draft("Ostel", (2, "Ostel"))
        case "answerer/answer":
            return {"known": True, "answer": "no"}
    return PASS


async def test_par_rag_independent_steps_run_in_parallel() -> None:
    case = par(Replying(independent), BOTH, REVIEWED)
    await case.run("?")
    assert case.nodes == [*FIRST, *NEXT, "answer"]
    first_wave = ["Where is the tower?", "Where is the bridge?"]
    assert [query.text for query in case.retriever.queries][:2] == first_wave
    assert case.prompts()[:5] == ["planner/plan", *["drafter/draft"] * 2, *["reviewer/review"] * 2]


async def test_par_rag_paper_profile_treats_all_steps_alike() -> None:
    steps = plan(("Where is the tower?", []), ("In which country is that?", [1]))
    steps[1]["action"] = "Answer"
    sentence = draft("The tower stands in Varn.", (1, "Varn"))
    revised = {"status": "REVISED", "answer": "The tower stands in Ostel.", "citations": []}
    final = {"known": True, "answer": "Oss"}
    refined = {"question": "In which country is Ostel?"}
    first, second = {"names": ["The tower", "Varn", "Varn"]}, {"names": []}
    drafted = draft("Ostel is in Oss.", (2, "Ostel"))
    case = par([steps, sentence, first, revised, refined, drafted, second, PASS, final], BOTH, PAPER)
    verdict = await case.run("?")
    assert case.nodes == [*FIRST, *NEXT, "answer"]
    assert case.prompts() == [
        *("planner/plan_in_order", "drafter/draft_sentence", "extractor/names", "reviewer/review_step"),
        *("refiner/refine", "drafter/draft_sentence", "extractor/names", "reviewer/review_step"),
        "answerer/answer_with_sources",
    ]
    assert case.model.requests[2].input == {"text": "The tower stands in Varn."}
    assert [query.mode for query in case.retriever.queries] == ["dense", "knowledge-graph"] * 2
    assert [query.entities for query in case.retriever.queries[1::2]] == [("The tower", "Varn"), ()]
    assert [query.text for query in case.retriever.queries] == [
        *("Where is the tower?", "The tower stands in Varn."),
        *("In which country is Ostel?", "Ostel is in Oss."),
    ]
    last = case.model.requests[-1].input
    assert last["trajectory"] == (
        {"question": "Where is the tower?", "answer": "The tower stands in Ostel."},
        {"question": "In which country is Ostel?", "answer": "Ostel is in Oss."},
    )
    assert [source["title"] for source in last["sources"]] == ["Bridge"], "the revised answer has no citation left"
    assert verdict["text"] == "Oss"


async def test_par_rag_answer_step_needs_no_search() -> None:
    steps = plan(("Where is the tower?", []), ("In which country is that?", [1]))
    steps[1]["action"] = "Answer"
    case = par(
        [
            steps,
            draft("Varn", (1, "Varn")),
            PASS,
            {"question": "In which country is Varn?"},
            {"answer": "Oss"},
            {"known": False},
        ],
        BOTH,
        REVIEWED,
    )
    await case.run("?")
    assert case.nodes == [*FIRST, "refine", "retrieve_coarse", "draft", "answer"]
    assert case.prompts()[-2:] == ["drafter/conclude", "answerer/answer"]
    assert len(case.retriever.queries) == 2
    assert case.model.requests[-2].input["trajectory"] == ({"question": "Where is the tower?", "answer": "Varn"},)
    assert case.state["notes"]["2"] == {
        "question": "In which country is Varn?",
        "finding": "Oss",
        "passages": [],
        "citations": [],
    }


async def test_par_rag_plan_without_search_is_replaced_by_the_question() -> None:
    steps = plan(("How high is the tower?", []))
    steps[0]["action"] = "Answer"
    case = par([steps, draft("30 m", (1, "It is 30 m high")), PASS, {"known": True, "answer": "30 m"}], BOTH, REVIEWED)
    verdict = await case.run("How high is it?")
    assert [query.text for query in case.retriever.queries] == ["How high is it?", "How high is it? 30 m"]
    assert [citation["quote"] for citation in verdict["citations"]] == ["It is 30 m high"]


async def test_par_rag_accepted_draft_cites_a_coarse_passage() -> None:
    case = par([ONE, draft("30 m"), PASS, {"known": True, "answer": "30 m"}], [TOWER], REVIEWED)
    case.retriever.found = {"How high is the tower? 30 m": [BRIDGE]}
    await case.run("?")
    assert [each["quote"] for each in case.state["notes"]["1"]["citations"]] == ["It is 30 m high."]


async def test_par_rag_fine_query_has_the_whole_sentence() -> None:
    sentence = draft("Yes, the tower is higher than the bridge.", (1, "It is 30 m high"))
    steps = plan(("Is the tower higher than the bridge?", []))
    case = par([steps, sentence, {"names": []}, PASS, {"known": True, "answer": "yes"}], BOTH, PAPER)
    await case.run("?")
    assert case.retriever.queries[-1].text == "Yes, the tower is higher than the bridge."


HILL = passage("hill", "It stands by itself. Nobody lives there.")
MILL = passage("mill", "A tower stands in Ostel too. It is a ruin.")


@pytest.mark.parametrize(
    ("quotes", "answer", "more", "reviewed"),
    [
        ([(1, "stands in Varn")], "Varn", [], False),
        ([(1, "The tower stands")], "Varn", [], False),
        ([(1, "stands in Varn")], "Ostel", [], True),
        ([(1, "30 m")], "30 m", [], True),
        ([(2, "The bridge is in Ostel")], "Ostel", [], True),
        ([(1, "stands in Varn")], "Varn", [HILL], False),
        ([(1, "stands in Varn")], "Varn", [MILL], True),
        ([(3, "in Ostel")], "Ostel", [MILL], True),
        ([(1, "in Varn"), (3, "in Varn")], "Varn", [replace(MILL, text="A tower stands in Varn too.")], False),
        ([], "Varn", [], True),
    ],
    ids=[
        "best fit",
        "another part of it",
        "not the answer",
        "another sentence of it fits better",
        "one of another passage fits better",
        "one of another passage has as many words, but others",
        "one of another passage has the same words",
        "the same, cited the other way round",
        "both cited",
        "none cited",
    ],
)
async def test_par_rag_unambiguous_draft_skips_review(
    quotes: list[tuple[int, str]], answer: str, more: list[Passage], reviewed: bool
) -> None:
    asked = [{"question": "Where is the tower that stands on the hill?"}]
    replies = [asked, draft(answer, *quotes), *([PASS] if reviewed else []), {"known": False}]
    case = par(replies, [*BOTH, *more])
    await case.run("?")
    assert ("review" in case.nodes) is reviewed


async def test_par_rag_inherited_note_is_not_searched() -> None:
    chain = example("q08")
    first, second = chain.hops
    known = {"question": f" {first.planned.upper()}", "finding": first.answer, "passages": []}
    replies = chain.replies()
    case = par([replies[0], *replies[3:]], chain.passages)
    verdict = await case.run(chain.question, {"handed over 1": known})  # type: ignore[dict-item]
    assert case.nodes == ["plan", *NEXT, "answer"]
    assert case.model.requests[0].input["known"] == ({"question": known["question"], "answer": first.answer},)
    assert [query.text for query in case.retriever.queries] == [second.asked, f"{second.asked} 1868"]
    assert verdict["text"] == chain.answer


# The budget


async def test_par_rag_resumed_matches_replies_to_steps() -> None:
    down = True

    def reply_to(request: Any) -> Any:
        if request.prompt == "drafter/draft" and "tower" in request.input["question"] and down:
            return ModelUnavailable("down")
        return independent(request)

    case = par(Replying(reply_to), BOTH)
    case.retriever.found = {"Where is the tower?": [TOWER], "Where is the bridge?": [BRIDGE]}
    with pytest.raises(ModelUnavailable):
        await case.run("?")
    down = False
    await case.run("?")
    assert {key: draft["answer"] for key, draft in case.state["drafts"].items()} == {
        "1": "Varn",
        "2": "Ostel",
        "3": "Ostel",
    }


async def test_par_rag_out_of_tokens_returns_best_so_far() -> None:
    chain = example("q08")
    case = par(ScriptedModel(chain.replies()), chain.passages, budget=Budget(max_tokens=500))
    verdict = await case.run(chain.question)
    assert verdict["status"] == "out_of_budget"
    assert verdict["text"] == chain.hops[0].answer
    assert [citation["passage"] for citation in verdict["citations"]] == [chain.hops[0].passage.id]
    spent = [call["prompt_tokens"] + call["completion_tokens"] for call in case.state["calls"].values()]
    assert sum(spent[:-1]) < 500


def test_par_rag_step_lists_its_passages_and_draft() -> None:
    update = {"coarse": {"1": ["a", "b"]}, "fine": {"1": ["c"]}, "drafts": {"1": {"answer": "", "citations": []}}}
    assert summarize(update) == [
        "passages for step 1: 2",
        "passages for the review of step 1: 1",
        "draft of step 1: –",
    ]
