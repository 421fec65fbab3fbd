"""RetroRAG's trajectories: nodes in order, prompts asked, queries made, and what enters and leaves the evidence."""

from dataclasses import replace
from typing import Any, Literal

import pytest
from retro_scenes import NOISE, Detective, retro, shelf
from scenes import Case, Chain, Replying, Shelf, ask, example, finish, passage, resolves
from scripted_model import reply

from sleuth.agents.model import Request
from sleuth.graphs.core.answer import Note, Threshold
from sleuth.graphs.core.context import Budget, Services
from sleuth.graphs.methods.retro_rag.graph import Settings
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.runs.history import fork_run, list_checkpoints
from sleuth.graphs.runs.service import RunService
from sleuth.tools.types import Passage


@pytest.fixture
def two_hops() -> Chain:
    return example("q08")


def judging(chain: Chain, replies: dict[str, Any]) -> Replying:
    """A model that makes no mistake, with other replies to these prompts."""
    others = Detective(chain)
    return Replying(lambda request: replies[request.prompt] if request.prompt in replies else others.reply_to(request))


TESTS = {"evaluator/relevance", "evaluator/attribution"}


async def test_retro_rag_inferences_are_notes_with_passages(two_hops: Chain) -> None:
    case = retro(two_hops)
    await case.run(two_hops.question)
    inference, answer = case.state["notes"].values()
    assert (inference["question"], inference["passages"]) == (two_hops.hops[0].asked, ["q08-1"])
    assert all(resolves(citation, two_hops.passages) for citation in inference["citations"])
    assert (answer["question"], answer["finding"]) == (two_hops.question, "1868")
    assert set(answer["passages"]) == {"q08-1", "q08-2"}


async def test_retro_rag_tests_inferences_for_the_query_given_those_before(two_hops: Chain) -> None:
    case = retro(two_hops, Settings(threshold=1, max_iterations=3))
    await case.run(two_hops.question)
    asked = [request.input for request in case.model.requests if request.prompt == "evaluator/relevance"]
    last, first, claim = asked[-1], two_hops.hops[0].asked, Detective(two_hops).claim(0)
    assert last["query"] == f"{two_hops.question} {two_hops.hops[1].asked}"
    assert last["known"] == ({"question": first, "answer": claim},)
    scored = [request.input for request in case.model.requests if request.prompt == "evaluator/evidence"]
    assert {each["query"] for each in scored if each["sources"][0]["title"] == "Inference"} == {two_hops.question}


async def test_retro_rag_samples_second_answer_only(two_hops: Chain) -> None:
    case = retro(two_hops)
    await case.run(two_hops.question)
    for request in case.model.requests:
        if request.role == "evaluator":
            assert (request.sampling.max_tokens, request.sampling.top_logprobs) == (1, 20)
            assert request.schema is None and request.choices is None
        expected = {"reasoner/monitor": 1.0, "reasoner/reason": 0.01}.get(request.prompt, 0.0)
        assert request.sampling.temperature == expected


# The ablations


async def test_retro_rag_without_updating_replaces_evidence(two_hops: Chain) -> None:
    case = retro(two_hops, Settings(update=False, max_iterations=2))
    verdict = await case.run(two_hops.question)
    assert set(case.state["sources"]) == {"q08-2", "noise-0", "noise-1"}
    assert case.state["departures"] == {
        "2 q08-1": {"round": 2, "what": "q08-1", "why": "evidence of earlier rounds is not kept"},
        "2 noise-2": {"round": 2, "what": "noise-2", "why": "evidence of earlier rounds is not kept"},
    }
    assert verdict["text"] == "1868", "with the inference of the round before"


async def test_paper_profile_infers_all_and_shows_examples(two_hops: Chain) -> None:
    many = [{"question": "?", "claim": f"It is so {at}.", "citations": []} for at in range(7)]
    yes = judging(two_hops, {"detective/infer_all": {"inferences": many}, **dict.fromkeys(TESTS, 0.9)})
    case = retro(two_hops, Settings(max_iterations=2).as_in_paper(), model=yes)
    await case.run(two_hops.question)
    assert len(case.state["tests"]) == 7
    assert "reasoner/reason" not in case.prompts()
    first = next(request for request in yes.requests if request.prompt == "reasoner/reason_with_examples")
    assert "Tessel Mill" in first.text()
    assert len([key for key in case.state["notes"] if key.startswith("inference 1.")]) == 5


# Removal of evidence

SHIPYARD = "Of Which shipyard built the Lady Morrable this is known: Trevandle & Ruske"
TWINS = [passage(f"twin-{at}", f"Copy {at}. {SHIPYARD}") for at in (1, 2)]


def forgetful(chain: Chain, settings: Settings, *more: Passage) -> Case:
    """In round two the second hop's passage, and others, score higher than the first."""
    case = retro(chain, settings, model=Replying(Detective(chain, {"1868": 0.95, "Copy": 0.94}).reply_to))
    case.retriever = Shelf([chain.hops[0].passage], {chain.hops[1].asked: [chain.hops[1].passage, *more]})
    return case


@pytest.mark.parametrize(
    ("orphans", "outcome"),
    [("test", "no other passage supports it"), ("drop", "it was not tested again"), ("keep", None)],
)
async def test_retro_rag_inference_is_removed_with_its_passages(
    two_hops: Chain, orphans: Literal["test", "drop", "keep"], outcome: str | None
) -> None:
    case = forgetful(two_hops, Settings(max_sources=1, max_iterations=2, orphans=orphans))
    verdict = await case.run(two_hops.question)
    why = {key: left["why"] for key, left in case.state["departures"].items()}
    query = f"{two_hops.question} {two_hops.hops[1].asked}"
    assert why.pop("2 q08-1") == f"scored 0.90 for {query!r}: not among the best 1"
    if outcome is None:
        assert why == {}
        assert verdict["text"] == "1868"
    else:
        assert why == {"2 inference 1.1": f"its passages have left (q08-1): {outcome}"}
        assert "inference 1.1" not in case.state["notes"]
        assert verdict["status"] == "unknown"
    retests = [request for request in case.model.requests if request.prompt == "evaluator/attribution"][1:]
    assert [[source["text"] for source in retest.input["sources"]] for retest in retests] == (
        [[two_hops.hops[1].passage.text]] if orphans == "test" else []
    )


async def test_retro_rag_orphan_moves_to_supporting_passages(two_hops: Chain) -> None:
    case = forgetful(two_hops, Settings(max_sources=3), *TWINS)
    verdict = await case.run(two_hops.question)
    kept = case.state["notes"]["inference 1.1"]
    assert (kept["passages"], kept["remark"]) == (["twin-1", "twin-2"], "its first passages have left")
    assert [citation["passage"] for citation in kept["citations"]] == ["twin-1"]
    assert all(resolves(citation, TWINS) for citation in kept["citations"])
    assert list(case.state["departures"]) == ["2 q08-1"]
    assert verdict["text"] == "1868"


async def test_retro_rag_keeps_best_inferences(two_hops: Chain) -> None:
    model = Replying(Detective(two_hops, {"shipyard built": 0.6, "year was": 0.7}).reply_to)
    case = retro(two_hops, Settings(max_inferences=1, max_iterations=3, threshold=1), model=model)
    await case.run(two_hops.question)
    assert [key for key in case.state["notes"] if key != "answer"] == ["inference 2.1"]
    assert case.state["departures"]["2 inference 1.1"] == {
        "round": 2,
        "what": SHIPYARD,
        "why": f"scored 0.60 for {two_hops.question!r}: not among the best 1",
    }


@pytest.mark.parametrize("failing", sorted(TESTS))
async def test_retro_rag_drops_inferences_failing_a_test(two_hops: Chain, failing: str) -> None:
    case = retro(two_hops, Settings(max_iterations=2), model=judging(two_hops, {failing: 0.5}))
    await case.run(two_hops.question)
    assert [key for key in case.state["notes"] if key != "answer"] == []
    assert set(case.prompts()) >= TESTS
    assert "departures" not in case.state or case.state["departures"] == {}, "what never entered cannot leave"


async def test_retro_rag_drops_inference_without_passage(two_hops: Chain) -> None:
    invented = {"question": "?", "claim": "It is so.", "citations": [{"source": 9, "quote": "It is so."}]}
    model = judging(two_hops, {"detective/infer": {"inferences": [invented]}})
    case = retro(two_hops, Settings(max_iterations=2), model=model)
    await case.run(two_hops.question)
    assert "evaluator/relevance" not in case.prompts()
    assert case.state["warnings"] == ["an inference of round 1 names no passage that was shown: 'It is so.'"]


async def test_retro_rag_history_shows_removed_evidence(store: Store, two_hops: Chain) -> None:
    case = forgetful(two_hops, Settings())
    runs = RunService(store, Services(model=case.model, retriever=case.retriever))
    values = {"max_sources": 1, "max_iterations": 2}
    first = await ask(runs, two_hops.question, "retro-rag", values=values)
    assert first.status == "unknown"
    id = first.thread

    moments = await list_checkpoints(runs, id)
    left = next(moment for moment in moments if "departures" in moment.changed)
    assert left.node == ["collate"]
    assert list(left.changed["departures"]) == ["2 q08-1", "2 inference 1.1"]
    assert list(left.changed["sources"]) == ["q08-2"]
    assert "inference 1.1" not in left.changed["notes"]

    before = next(moment for moment in moments if moment.node == ["plan"])
    elsewhere = "Who sailed on the Lady Morrable?"
    case.retriever.found = {elsewhere: NOISE[:1]}
    await fork_run(runs, id, at=before.checkpoint, changes={"query": elsewhere})
    await finish(runs, id)
    branch, *rest = await list_checkpoints(runs, id)
    assert rest[-len(moments) :] == moments, "the run that was left stays as it was"
    thread = await runs.store.threads.get(id)
    state = (await runs.graph(thread).aget_state(runs.config(thread, branch.checkpoint))).values
    assert case.retriever.queries[-1].text == elsewhere
    assert (list(state["sources"]), list(state["notes"])) == (["q08-1"], ["inference 1.1"])
    assert state["departures"] == {}


# When an answer is final


@pytest.mark.parametrize(("probability", "status"), [(0.5, "unknown"), (0.51, "answered")])
async def test_retro_rag_answer_is_final_only_if_declarative(two_hops: Chain, probability: float, status: str) -> None:
    model = judging(two_hops, {"evaluator/declarative": probability})
    case = retro(two_hops, Settings(max_iterations=2, assess=True), model=model)
    assert (await case.run(two_hops.question))["status"] == status
    assert case.state["attempts"]["2"]["declarative"] is (status == "answered")
    assert case.state["attempts"]["2"]["consistency"] == pytest.approx(0.9)
    (asked, *_) = [request.input for request in model.requests if request.prompt == "evaluator/declarative"]
    assert asked == {"question": two_hops.question, "answer": "1868"}
    assert case.state["warnings"] == []


async def test_retro_rag_without_log_probabilities_takes_the_word(two_hops: Chain) -> None:
    detective = Detective(two_hops)

    def plain(request: Request) -> Any:
        said = detective.reply_to(request)
        return reply("Yes" if said > 0.5 else "No") if isinstance(said, float) else said

    case = retro(two_hops, model=Replying(plain))
    verdict = await case.run(two_hops.question)
    assert (verdict["status"], case.state["round"]) == ("answered", 2)
    assert "evaluator/consistency: no log-probabilities, so the reply is a plain yes or no" in case.state["warnings"]


async def test_retro_rag_state_has_all_scores(two_hops: Chain) -> None:
    model = judging(two_hops, {"evaluator/relevance": 0.8, "evaluator/attribution": 0.3})
    case = retro(two_hops, Settings(max_iterations=2), model=model)
    await case.run(two_hops.question)
    (rejected,) = case.state["tests"].values()
    assert rejected == {
        "claim": SHIPYARD,
        "relevance": pytest.approx(0.8),
        "attribution": pytest.approx(0.3),
        "evidence": None,
    }
    passing = retro(two_hops)
    await passing.run(two_hops.question)
    assert passing.state["tests"]["inference 1.1"]["evidence"] == pytest.approx(0.9)


@pytest.mark.parametrize(("consistency", "rounds"), [(0.71, 2), (0.69, 3), (0.2, 3)])
async def test_retro_rag_answer_is_final_above_threshold(two_hops: Chain, consistency: float, rounds: int) -> None:
    model = judging(two_hops, {"evaluator/consistency": consistency})
    case = retro(two_hops, Settings(max_iterations=3), model=model)
    verdict = await case.run(two_hops.question)
    assert case.state["round"] == rounds
    assert verdict["text"] == "1868"
    assert case.state["attempts"][str(rounds)]["consistency"] == pytest.approx(consistency)
    closest = ["no answer was consistent enough: this one came closest"]
    assert case.state["warnings"] == (closest if rounds == 3 else [])


@pytest.mark.parametrize(("given", "value", "rounds"), [(None, 0.55, 2), (0.65, 0.65, 5)])
async def test_retro_rag_answer_names_origin_of_threshold(
    store: Store, two_hops: Chain, given: float | None, value: float, rounds: int
) -> None:
    fitted = {"evaluator/consistency": Threshold(value=0.55, by="fitted for a model")}
    model = judging(two_hops, {"evaluator/consistency": 0.6})
    services = Services(model=model, retriever=shelf(two_hops), thresholds=fitted)
    runs = RunService(store, services)
    answer = await ask(runs, two_hops.question, "retro-rag", values={"threshold": given} if given else {})
    assert answer.threshold and answer.threshold["value"] == value
    asked = [request.prompt for request in model.requests]
    assert asked.count("reasoner/reason") == rounds
    without = RunService(store, replace(services, thresholds={}))
    assert await finish(without, answer.thread) == answer


# Inherited notes


async def test_retro_rag_inherited_sub_answer_is_kept(two_hops: Chain) -> None:
    hop = two_hops.hops[0]
    note: Note = {"question": hop.asked, "finding": hop.answer, "passages": ["q08-1"]}
    case = retro(two_hops)
    verdict = await case.run(two_hops.question, {"handed over 1": note})
    assert hop.asked not in [query for query, _, _ in case.retriever.asked()]
    assert case.nodes[:4] == ["retrieve", "collate", "answer", "verify"]
    assert case.state["notes"]["handed over 1"] == note
    assert verdict["text"] == "1868"


# The budget


@pytest.mark.parametrize(
    ("most", "made", "last"),
    [
        (10, 8, "detective/infer"),  # the inference needs two tests and a score
        (11, 11, "evaluator/evidence"),
        (20, 19, "reasoner/monitor"),  # the answer of round two is to be consistent and declarative
        (21, 21, "evaluator/declarative"),
    ],
)
async def test_retro_rag_tests_only_what_the_budget_has_room_for(
    two_hops: Chain, most: int, made: int, last: str
) -> None:
    case = retro(two_hops, Settings(assess=True), budget=Budget(max_calls=most))
    await case.run(two_hops.question)
    assert len(case.prompts()) == made
    assert last in case.prompts()[-2:]
