"""CRP-RAG's trajectories: nodes in order, prompts asked, queries made, and what comes of them."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from paths_model import PathsModel, way
from scenes import Replying, Shelf, ask, crp, example, finish, passage, resolves, sure

from sleuth.agents.model import Request
from sleuth.graphs.core.answer import Threshold
from sleuth.graphs.core.context import Budget, Services
from sleuth.graphs.methods.crp_rag.graph import Settings
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.runs.service import RunService

GRAPH = Settings(shortcut=False)

TRIED, LEFT, LAYER = "try_shortcut", "leave_shortcut", ["expand", "merge"]
KNOW, ANSWER = ["retrieve", "aggregate", "verify"], ["select_paths", "reason"]
EXPAND, FUSE, AGGREGATE, VERIFY = "expander/expand", "fuser/fuse", "aggregator/aggregate", "verifier/verify"
STEP, LAST, PATH = "integrator/step", "integrator/last_step", "integrator/path"
INTEGRATE, REWRITE = "integrator/integrate", "expander/rewrite"


async def test_crp_rag_failed_shortcut_grows_graph() -> None:
    model = PathsModel([A])

    def reply_to(request: Request) -> Any:
        return (
            sure("not mentioned")
            if request.input.get("question") == "?" and request.prompt == VERIFY
            else model(request)
        )

    case = crp(Replying(reply_to), [TOWER])
    verdict = await case.run("?")
    assert case.nodes == [TRIED, *KNOW, *ANSWER, LEFT, *LAYER, *KNOW, *ANSWER, "integrate"]
    assert case.prompts() == [AGGREGATE, VERIFY, STEP, EXPAND, EXPAND, AGGREGATE, VERIFY, LAST]
    assert list(case.state["notes"]) == ["path 1>2"]
    assert verdict["text"] == "Ida Moll"


async def test_crp_rag_answer_of_the_shortcut_is_cited() -> None:
    chain = example("q08")
    case = crp(Replying(PathsModel([(chain.question, chain.answer)])), chain.passages)
    verdict = await case.run(chain.question)
    assert case.nodes == [TRIED, *KNOW, *ANSWER, "integrate"]
    (citation,) = verdict["citations"]
    assert citation["quote"] == f"this is known: {chain.answer}"
    assert resolves(citation, chain.passages)


async def test_crp_rag_conditions_are_all_results_before() -> None:
    hops = [A, C, D]
    case = crp(Replying(PathsModel(hops)), [TOWER], Settings(shortcut=False, samples=1).as_in_paper())
    verdict = await case.run("?")
    *_, third = [request for request in case.model.requests if request.role == "expander"]
    assert third.input["steps"] == (A[0], C[0])
    *_, last = [request for request in case.model.requests if request.prompt == STEP]
    assert last.input["known"] == tuple({"question": asked, "answer": found} for asked, found in hops[:2])
    assert last.sampling.temperature == 0.1
    assert verdict["text"] == D[1]


# The graph

TOWER = passage("tower", "The tower stands in Varn. It is 30 m high. Nobody lives there.")
A, B = ("Who built the tower?", "Ida Moll"), ("Who owned the tower?", "Ida Moll")
C, D = ("Where was Ida Moll born?", "Ostel"), ("Where did Ida Moll die?", "Varn")


async def test_crp_rag_merges_equal_steps_and_shared_prefixes() -> None:
    case = crp(Replying(PathsModel([A, C], [B, C])), [TOWER], GRAPH)
    verdict = await case.run("?")
    assert {key: (node["content"], node["prev"]) for key, node in case.state["nodes"].items()} == {
        "1": ("?", []),
        "2": (A[0], ["1"]),
        "3": (B[0], ["1"]),
        "4": (C[0], ["2", "3"]),
    }
    assert Counter(case.prompts()) == {EXPAND: 6, AGGREGATE: 3, VERIFY: 3, STEP: 2, LAST: 2, INTEGRATE: 1}
    assert list(case.state["notes"]) == ["path 1>2", "path 1>3", "path 1>2>4", "path 1>3>4"]
    integrate = case.model.requests[-1].input["answers"]
    assert [each["answer"] for each in integrate] == ["Ostel", "Ostel"]
    assert integrate[1]["steps"] == ({"question": B[0], "answer": B[1]}, {"question": C[0], "answer": C[1]})
    assert verdict["text"] == "Ostel"


NEAR = ("Who has built the tower?", "Ida Moll")
FUSED = (f"{A[0]} / {NEAR[0]}", "Ida Moll")
TWO_WAYS = ([A, C], [NEAR, C], [B, C], [FUSED, C])
"""Of three samples the first two are fused, and both ways lead to the same step."""


async def test_crp_rag_merges_similar_steps_in_one_call() -> None:
    model = Replying(PathsModel([A], [NEAR], [B], [FUSED]))
    case = crp(model, [TOWER], Settings(shortcut=False, samples=3), embedder=HashingEmbedder())
    await case.run("?")
    assert [node["content"] for node in case.state["nodes"].values()] == ["?", FUSED[0], B[0]]
    assert case.nodes == [TRIED, *LAYER, *KNOW, *ANSWER, "integrate"]
    assert case.prompts()[:4] == [EXPAND, EXPAND, EXPAND, FUSE]
    assert {*case.model.requests[3].input["steps"]} == {A[0], NEAR[0]}  # samples come in any order


@pytest.mark.parametrize(
    ("values", "fuses"),
    [
        *(({"merge_threshold": threshold}, fuses) for threshold, fuses in ((0.0, 1), (0.85, 1), (1.0, 0))),
        *(({"structure": structure}, fuses) for structure, fuses in (("graph", 1), ("tree", 0))),
    ],
)
async def test_crp_rag_merges_steps_above_the_threshold_of_a_graph_only(values: dict[str, Any], fuses: int) -> None:
    settings = Settings.model_validate({"shortcut": False, **values})
    case = crp(Replying(PathsModel([A], [NEAR], [B])), [TOWER], settings, embedder=HashingEmbedder())
    await case.run("?")
    assert case.prompts().count(FUSE) == fuses


async def test_crp_rag_step_repeating_ancestor_is_dropped() -> None:
    def reply_to(request: Request) -> Any:
        return {"step": A[0], "final": False} if request.prompt == EXPAND else PathsModel([A])(request)

    case = crp(Replying(reply_to), [TOWER], GRAPH)
    verdict = await case.run("?")
    assert [(node["content"], node["end"]) for node in case.state["nodes"].values()] == [("?", False), (A[0], True)]
    assert verdict["text"] == A[1]


def endless() -> Callable[[Request], Any]:
    """Proposes something new whenever it is asked, and never an end."""
    count = iter(range(10_000))

    def reply_to(request: Request) -> Any:
        if request.prompt == EXPAND:
            return {"step": f"step {next(count)}?", "final": False}
        return {"knowledge": "k", "answer": "a"} if request.prompt != VERIFY else sure("a")

    return reply_to


@pytest.mark.parametrize(
    ("settings", "layers", "warning"),
    [
        ({"max_depth": 2}, [2, 4], "max_depth is reached: 4 open steps were taken as the last ones."),
        ({"max_nodes": 5}, [2, 3], "max_nodes is reached: 1 proposed steps were left out."),
        ({"max_nodes": 3, "max_width": 2}, [2], "max_nodes is reached: 2 open steps were taken as the last ones."),
        ({"max_width": 3, "max_depth": 2}, [2, 3], "max_width is reached: 1 proposed steps were left out."),
        ({"max_paths": 1, "max_depth": 1}, [2], "max_paths is reached: only 1 paths were answered from."),
    ],
)
async def test_crp_rag_bounds_are_kept_and_named(settings: dict[str, int], layers: list[int], warning: str) -> None:
    case = crp(Replying(endless()), [TOWER], Settings(shortcut=False, **settings))  # type: ignore[arg-type]
    verdict = await case.run("?")
    assert len(case.state["nodes"]) == 1 + sum(layers)
    assert case.state["depth"] == len(layers)
    assert warning in case.state["warnings"]
    assert verdict["status"] == "answered"
    assert case.prompts().count(INTEGRATE) == (0 if "max_paths" in settings else 1)


# Knowledge and paths


async def test_crp_rag_insufficient_step_excludes_its_paths() -> None:
    unknown = ("Who is the owner?", "")
    case = crp(Replying(PathsModel([A, C], [unknown, D])), [TOWER], GRAPH)
    verdict = await case.run("?")
    assert verdict["text"] == "Ostel"
    assert [request.input["step"] for request in case.model.requests if request.prompt in (STEP, LAST)] == [A[0], C[0]]


async def test_crp_rag_refusal_lists_missing_steps() -> None:
    model = PathsModel([A, C], [("Who?", ""), D])

    def reply_to(request: Request) -> Any:
        nothing = request.prompt == AGGREGATE and request.input["step"] == C[0]
        unsure = request.prompt == VERIFY and request.input["question"] == C[0]
        return {"knowledge": " "} if nothing else sure("Varn", 7.0) if unsure else model(request)

    case = crp(Replying(reply_to), [TOWER], GRAPH)
    verdict = await case.run("?")
    assert verdict["status"] == "refused"
    assert verdict["text"].splitlines() == [
        "What I found does not suffice for an answer.",
        "What is missing:",
        "- Who? (no sure answer in what was found: its perplexity is 40.0)",
        f"- {C[0]} (no sure answer in what was found: its perplexity is 7.0)",
    ]


@pytest.mark.parametrize(("threshold", "status"), [(1.5001, "answered"), (1.4999, "refused")])
async def test_crp_rag_threshold_decides_sufficiency(threshold: float, status: str) -> None:
    case = crp(Replying(PathsModel([A])), [TOWER], Settings(shortcut=False, perplexity_threshold=threshold))
    verdict = await case.run("?")
    assert verdict["status"] == status
    assert case.state["verified"]["2"]["perplexity"] == pytest.approx(1.5, abs=1e-6)


FITTED = Threshold(value=1.4, by="fitted for the model")


@pytest.mark.parametrize(
    ("given", "fitted", "holds", "status"),
    [
        (None, None, {"value": 2.0, "by": "the default; `sleuth calibrate` fits one for the model"}, "answered"),
        (None, FITTED, FITTED, "refused"),
        (1.6, FITTED, {"value": 1.6, "by": "as set for this run"}, "answered"),
    ],
)
async def test_crp_rag_answer_names_origin_of_threshold(
    store: Store, given: float | None, fitted: Threshold | None, holds: Threshold, status: str
) -> None:
    services = Services(model=Replying(PathsModel([A])), retriever=Shelf([TOWER]))
    runs = RunService(store, replace(services, thresholds={VERIFY: fitted} if fitted else {}))
    values = {"shortcut": False} | ({"perplexity_threshold": given} if given else {})
    answer = await ask(runs, "?", "crp-rag", values=values)
    assert answer.status == status
    assert answer.to_json()["threshold"] == holds
    assert await finish(RunService(store, services), answer.thread) == answer


@pytest.mark.parametrize(
    ("others", "status"),
    [
        (["Ida Moll.", "ida moll", "X"], "answered"),
        (["Ida Moll.", "X", "Y"], "refused"),
        (["Y", "X", "X"], "refused"),
        (["Ida Moll", "X"], "refused"),
        (["Ida Moll", "Ida Moll", "Ida Moll", "X", "Y", "Z"], "refused"),
    ],
)
async def test_crp_rag_without_log_probabilities_compares_samples(others: list[str], status: str) -> None:
    said, samples = iter(["Ida Moll", *others]), len(others)
    model = Replying(lambda request: next(said) if request.prompt == VERIFY else PathsModel([A])(request))
    case = crp(model, [TOWER], Settings(shortcut=False, agreement_samples=samples))
    verdict = await case.run("?")
    assert verdict["status"] == status
    assert case.prompts().count(VERIFY) == samples + 1
    assert f"no log-probabilities: knowledge suffices where most of {samples} samples agree" in case.state["warnings"]


@pytest.mark.parametrize(("most", "verified"), [(11, 2), (12, 2 + 2 * 3)])
async def test_crp_rag_compares_samples_if_the_budget_has_room_for_all_of_them(most: int, verified: int) -> None:
    """Two steps, for each of which there are an expansion, a summary, an answer and three samples."""
    paths = PathsModel([A], [B])
    model = Replying(lambda request: "Ida Moll" if request.prompt == VERIFY else paths(request))
    case = crp(model, [TOWER], Settings(shortcut=False, agreement_samples=3), budget=Budget(max_calls=most))
    await case.run("?")
    assert case.prompts().count(VERIFY) == verified


def differing(other: str) -> Replying:
    """The path over B gives another answer to C than the one over A."""
    model = PathsModel([A, C], [B, C])

    def reply_to(request: Request) -> Any:
        if request.prompt == LAST and request.input["step"] == C[0]:
            return {"answer": "Ostel" if request.input["known"][0]["question"] == A[0] else other}
        return model(request)

    return Replying(reply_to)


async def test_crp_rag_contradicting_paths_are_named() -> None:
    differ = f"Paths contradict each other at step 4, {C[0]!r}: {{!r}} by path 1>2>4, {{!r}} by path 1>3>4"
    lines = {differ.format("Ostel", "Varn"), differ.format("Varn", "Ostel")}  # samples come in any order
    for settings, said in ((GRAPH, True), (GRAPH.model_copy(update={"contradictions": False}), False)):
        case = crp(differing("Varn"), [TOWER], settings)
        verdict = await case.run("?")
        assert bool(lines & set(case.state["warnings"])) is said
        assert verdict["text"] in ("Ostel or Varn", "Varn or Ostel")


@pytest.mark.parametrize(
    ("other", "differs"), [("Ostel.", False), ("in  ostel", False), ("Ostelby", True), ("Varn", True), ("", False)]
)
async def test_crp_rag_longer_wording_does_not_contradict(other: str, differs: bool) -> None:
    case = crp(differing(other), [TOWER], GRAPH)
    await case.run("?")
    assert any(warning.startswith("Paths contradict") for warning in case.state["warnings"]) is differs


async def test_crp_rag_without_budget_to_combine_gives_the_answer_of_the_surest_path() -> None:
    """The 16 calls before: an expansion of each sample, summary and answer of each step, and the results."""
    unsure, model = B, differing("Varn")
    known = model.answer
    model.answer = lambda request: (
        sure("Ida Moll", 1.9) if request.prompt == VERIFY and request.input["question"] == unsure[0] else known(request)
    )
    case = crp(model, [TOWER], GRAPH, budget=Budget(max_calls=16))
    verdict = await case.run("?")
    assert (verdict["status"], verdict["text"]) == ("out_of_budget", "Ostel")
    assert (len(case.prompts()), len(case.state["paths"])) == (16, 2)


# Ablations


async def test_crp_rag_without_verification_answers_two_paths() -> None:
    unknown = ("Who is the owner?", "")
    settings = Settings(verify=False, samples=3)
    case = crp(Replying(PathsModel([A, C], [("Where is it?", "Varn")], [unknown, C])), [TOWER], settings)
    verdict = await case.run("?")
    assert case.nodes == [TRIED, *LAYER, *LAYER, *KNOW, *ANSWER, "integrate"]
    assert VERIFY not in case.prompts()
    assert list(case.state["notes"]) == ["path 1>3", "path 1>2", "path 1>2>5"]
    assert verdict["text"] == "Varn or Ostel"


# Inherited notes


def handed(question: str, finding: str) -> Any:
    return {"question": question, "finding": finding, "passages": []}


async def test_crp_rag_reads_notes_with_passages() -> None:
    case = crp(Replying(PathsModel([("Who?", "Ida Moll")])), [TOWER])
    verdict = await case.run("Who?", {"1": handed(A[0], "Ida Moll"), "2": handed(B[0], "")})
    assert case.nodes == [TRIED, *KNOW, *ANSWER, "integrate"]
    assert case.prompts() == [AGGREGATE, VERIFY, STEP]
    assert case.model.requests[2].input["known"] == (), "the note is among the sources"
    assert case.model.requests[1].input["sources"][0] == {"title": A[0], "text": "Ida Moll"}
    assert [source["title"] for source in case.model.requests[1].input["sources"]] == [A[0], "Who?"]
    assert [query.text for query in case.retriever.queries] == ["Who?"]
    assert verdict["text"] == "Ida Moll"
    assert list(case.state["notes"]) == ["1", "2", "path 1"]


async def test_crp_rag_step_with_note_is_not_searched() -> None:
    chain = example("q08")
    (one, found), (two, _) = way(chain)
    case = crp(Replying(PathsModel(way(chain))), chain.passages)
    verdict = await case.run(chain.question, {"path 1>2": handed(f" {one.upper()}", found), "x": handed("Why?", "")})
    assert case.nodes == [TRIED, *KNOW, LEFT, *LAYER, *LAYER, *KNOW, *ANSWER, "integrate"]
    assert case.prompts() == [AGGREGATE, VERIFY, *[EXPAND] * 4, AGGREGATE, VERIFY, LAST]
    assert case.retriever.asked() == [(chain.question, "graph", 5), (two, "graph", 5)]
    assert case.model.requests[2].input["known"][0] == {"question": f" {one.upper()}", "answer": found}
    note, without = {"question": f" {one.upper()}", "answer": found}, {"question": "Why?", "answer": "not found"}
    assert case.model.requests[-1].input["known"] == (note, without)
    assert verdict["text"] == chain.answer
    assert list(case.state["notes"]) == ["path 1>2", "x", "path 1>2>3"]


# Bad replies, the budget, and interruptions


UNREADABLE = {
    FUSE: "The first of the similar steps represents all of them.",
    VERIFY: "counts as insufficient.",
    STEP: "Step 2 has no result.",
    LAST: "has no result.",
    PATH: "Path 1>2>5 has no answer.",
    INTEGRATE: "The first path's answer is taken.",
    REWRITE: "The question is searched for unchanged.",
}


@pytest.mark.parametrize("prompt", UNREADABLE)
async def test_crp_rag_unreadable_reply_costs_its_step_only(prompt: str) -> None:
    model = PathsModel(*TWO_WAYS, [("?", "x")])
    settings = Settings(
        shortcut=False, samples=3, iterate=prompt != PATH, structure="text" if prompt == REWRITE else "graph"
    )
    replying = Replying(lambda request: "" if request.prompt == prompt else model(request))
    case = crp(replying, [TOWER], settings, embedder=HashingEmbedder() if prompt == FUSE else None)
    verdict = await case.run("?")
    assert any(UNREADABLE[prompt] in warning for warning in case.state["warnings"])
    assert verdict["status"] in ("answered", "refused", "unknown")
