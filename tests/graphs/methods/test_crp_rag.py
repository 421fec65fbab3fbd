"""CRP-RAG's trajectories: nodes in order, prompts asked, queries made, and what comes of them."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hashing_embedder import HashingEmbedder
from scenes import Chain, Replying, Shelf, crp, example, finish, passage, resolves, sure
from ways import Ways, way

from sleuth.agents.model import Request
from sleuth.graphs.core.answer import Threshold
from sleuth.graphs.core.context import Budget
from sleuth.graphs.methods.crp_rag.graph import Settings
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.runs.history import fork_run, list_checkpoints
from sleuth.graphs.runs.service import RunService, Services
from sleuth.tools.errors import ModelUnavailable

GRAPH = Settings(shortcut=False)
PAPER = Settings().as_in_paper()

CRP_ROLES = ("expander", "fuser", "aggregator", "verifier", "integrator")
KNOW = ["retrieve", "aggregate", "verify"]
EXPAND, FUSE, AGGREGATE, VERIFY = "expander/expand", "fuser/fuse", "aggregator/aggregate", "verifier/verify"
STEP, LAST, PATH = "integrator/step", "integrator/last_step", "integrator/path"
INTEGRATE, REWRITE = "integrator/integrate", "refiner/refine"

CHAINS = {"two hops": "q08", "four hops": "q24", "unanswerable": "q31", "false premise": "q37"}


@pytest.fixture(params=CHAINS.values(), ids=CHAINS.keys())
def chain(request: pytest.FixtureRequest) -> Chain:
    return example(request.param)


def check_outcome(chain: Chain, state: dict[str, Any], verdict: dict[str, Any]) -> None:
    steps = way(chain)
    if chain.answer:
        found = [(note["question"], note["finding"]) for note in state["notes"].values()]
        assert (verdict["status"], verdict["text"], found) == ("answered", chain.answer, steps)
        assert [citation["passage"] for citation in verdict["citations"]] == [each.id for each in chain.passages]
        assert all(resolves(citation, chain.passages) for citation in verdict["citations"])
        assert state["warnings"] == [
            "There is no embedder: steps are merged only where they are the same word for word."
        ]
    else:
        assert (verdict["status"], verdict["citations"], state["notes"]) == ("refused", [], {})
        missing = f"- {steps[-1][0]} (no sure answer in what was found: its perplexity is 40.0)"
        assert verdict["text"].splitlines()[1:] == [missing]


async def test_the_question_is_tried_then_the_graph_grown_and_each_step_gets_knowledge(chain: Chain) -> None:
    case = crp(Replying(Ways(way(chain))), chain.passages)
    verdict = await case.run(chain.question)
    steps = [step for step, _ in way(chain)]

    known = chain.question in steps  # a false premise: the question is its own last step
    plans = ["plan"] * len(steps)
    assert case.nodes == ["plan", *KNOW, *plans, *KNOW, "answer"]
    results = [STEP] * (len(steps) - 1) + [LAST] if chain.answer else []
    gathered = [AGGREGATE] * len(steps) + [VERIFY] * len(steps)
    assert case.prompts() == [AGGREGATE, VERIFY, *[EXPAND] * 2 * len(steps), *gathered, *results]
    assert case.retriever.asked() == [(text, "graph", 5) for text in [chain.question, *steps]]
    assert known == (not chain.answer and len(chain.hops) == 1)
    check_outcome(chain, case.state, verdict)


async def test_the_paper_grows_the_graph_at_once_and_searches_by_vector(chain: Chain) -> None:
    case = crp(Replying(Ways(way(chain))), chain.passages, PAPER)
    verdict = await case.run(chain.question)
    steps = [step for step, _ in way(chain)]
    assert case.nodes == [*["plan"] * len(steps), *KNOW, "answer"]
    assert case.retriever.asked() == [(text, "dense", 5) for text in steps]
    check_outcome(chain, case.state, verdict)


async def test_a_question_that_its_own_knowledge_answers_needs_no_graph() -> None:
    chain = example("q08")
    case = crp(Replying(Ways([(chain.question, "1868")])), chain.passages)
    verdict = await case.run(chain.question)
    assert case.nodes == ["plan", *KNOW, "answer"]
    assert case.prompts() == [AGGREGATE, VERIFY, STEP]
    assert (verdict["status"], verdict["text"]) == ("answered", "1868")
    assert list(case.state["notes"]) == ["path 1"]


async def test_a_short_cut_that_leads_nowhere_after_all_leads_to_the_graph() -> None:
    model = Ways([A])

    def reply_to(request: Request) -> Any:
        return (
            sure("not mentioned")
            if request.input.get("question") == "?" and request.prompt == VERIFY
            else model(request)
        )

    case = crp(Replying(reply_to), [TOWER])
    verdict = await case.run("?")
    assert case.nodes == ["plan", *KNOW, "answer", "plan", *KNOW, "answer"]
    assert case.prompts() == [AGGREGATE, VERIFY, STEP, EXPAND, EXPAND, AGGREGATE, VERIFY, LAST]
    assert list(case.state["notes"]) == ["path 1>2"]
    assert verdict["text"] == "Ida Moll"


async def test_each_prompt_gets_what_it_should() -> None:
    chain = example("q08")
    case = crp(Replying(Ways(way(chain))), chain.passages, Settings(shortcut=False, samples=1))
    await case.run(chain.question)
    first, second, gather, _, verify, _, step, last = case.model.requests
    (one, found), (two, _) = way(chain)
    assert first.input == {"question": chain.question, "steps": (), "known": ()}
    assert second.input["steps"] == (one,)
    assert first.sampling.temperature == 0.8 and gather.sampling.temperature == 0.1
    assert [source["text"] for source in gather.input["sources"]] == [each.text for each in chain.passages]
    assert verify.input == {"question": one, "sources": ({"title": one, "text": f"It is {found}."},)}
    assert (verify.schema, verify.choices, verify.sampling.top_logprobs) == (None, None, 1)
    assert (step.input["step"], step.input["known"], step.input["question"]) == (one, (), chain.question)
    assert (last.input["step"], last.input["known"]) == (two, ({"question": one, "answer": found},))


# The graph

TOWER = passage("tower", "The tower stands in Varn. It is 30 m high. Nobody lives there.")
A, B = ("Who built the tower?", "Ida Moll"), ("Who owned the tower?", "Ida Moll")
C, D = ("Where was Ida Moll born?", "Ostel"), ("Where did Ida Moll die?", "Varn")


async def test_the_same_step_below_two_others_is_one_node_and_shared_beginnings_are_answered_once() -> None:
    case = crp(Replying(Ways([A, C], [B, C])), [TOWER], GRAPH)
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


async def test_a_tree_merges_nothing() -> None:
    case = crp(Replying(Ways([A, C], [B, C])), [TOWER], Settings(shortcut=False, structure="tree"))
    await case.run("?")
    assert [node["content"] for node in case.state["nodes"].values()] == ["?", A[0], B[0], C[0], C[0]]
    assert case.state["warnings"] == ["nothing that was read supports this answer word for word"]
    assert FUSE not in case.prompts()


async def test_a_chain_branches_at_the_question_only() -> None:
    case = crp(Replying(Ways([A, C], [B, D], [A, D])), [TOWER], Settings(shortcut=False, structure="chain", samples=3))
    await case.run("?")
    assert [node["prev"] for node in case.state["nodes"].values()] == [[], ["1"], ["1"], ["2"], ["3"]]
    assert case.prompts().count(EXPAND) == 3 + 2


async def test_a_text_is_the_question_said_otherwise() -> None:
    chain = example("q08")
    said = f"{chain.question} (said otherwise)"
    case = crp(Replying(Ways([(said, "1868")])), chain.passages, Settings(shortcut=False, structure="text"))
    verdict = await case.run(chain.question)
    assert case.nodes == ["plan", *KNOW, "answer"]
    assert case.prompts() == [REWRITE, AGGREGATE, VERIFY, LAST]
    assert case.retriever.asked() == [(said, "graph", 5)]
    assert verdict["text"] == "1868"


NEAR = ("Who has built the tower?", "Ida Moll")
FUSED = (f"{A[0]} / {NEAR[0]}", "Ida Moll")
TWO_WAYS = ([A, C], [NEAR, C], [B, C], [FUSED, C])
"""Of three samples the first two are fused, and both ways lead to the same step."""


async def test_similar_steps_are_fused_by_one_call_and_keep_their_edges() -> None:
    model = Replying(Ways([A], [NEAR], [B], [FUSED]))
    case = crp(model, [TOWER], Settings(shortcut=False, samples=3), embedder=HashingEmbedder())
    await case.run("?")
    assert [node["content"] for node in case.state["nodes"].values()] == ["?", FUSED[0], B[0]]
    assert case.nodes == ["plan", *KNOW, "answer"]
    assert case.prompts()[:4] == [EXPAND, EXPAND, EXPAND, FUSE]
    assert case.model.requests[3].input["steps"] == (A[0], NEAR[0])


@pytest.mark.parametrize(("threshold", "fuses"), [(0.0, 1), (0.85, 1), (1.0, 0)])
async def test_how_similar_is_a_setting(threshold: float, fuses: int) -> None:
    settings = Settings(shortcut=False, merge_threshold=threshold)
    case = crp(Replying(Ways([A], [NEAR], [B])), [TOWER], settings, embedder=HashingEmbedder())
    await case.run("?")
    assert case.prompts().count(FUSE) == fuses


async def test_a_step_that_repeats_what_leads_to_it_ends_its_line() -> None:
    def reply_to(request: Request) -> Any:
        return {"step": A[0], "final": False} if request.prompt == EXPAND else Ways([A])(request)

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
@pytest.mark.sweep
async def test_bounds_hold_and_are_named(settings: dict[str, int], layers: list[int], warning: str) -> None:
    case = crp(Replying(endless()), [TOWER], Settings(shortcut=False, **settings))  # type: ignore[arg-type]
    verdict = await case.run("?")
    assert len(case.state["nodes"]) == 1 + sum(layers)
    assert case.state["depth"] == len(layers)
    assert warning in case.state["warnings"]
    assert verdict["status"] == "answered"
    assert case.prompts().count(INTEGRATE) == (0 if "max_paths" in settings else 1)


# Knowledge and paths


async def test_an_insufficient_step_turns_its_paths_away_and_others_answer() -> None:
    unknown = ("Who is the owner?", "")
    case = crp(Replying(Ways([A, C], [unknown, D])), [TOWER], GRAPH)
    verdict = await case.run("?")
    assert verdict["text"] == "Ostel"
    assert [request.input["step"] for request in case.model.requests if request.prompt in (STEP, LAST)] == [A[0], C[0]]


async def test_a_refusal_lists_what_is_missing_step_by_step() -> None:
    model = Ways([A, C], [("Who?", ""), D])

    def reply_to(request: Request) -> Any:
        nothing = request.prompt == AGGREGATE and request.input["step"] == C[0]
        return {"knowledge": " "} if nothing else model(request)

    case = crp(Replying(reply_to), [TOWER], GRAPH)
    verdict = await case.run("?")
    assert verdict["status"] == "refused"
    assert verdict["text"].splitlines() == [
        "No line of reasoning has all the knowledge that it needs. What is missing:",
        "- Who? (no sure answer in what was found: its perplexity is 40.0)",
        f"- {C[0]} (nothing was found about it)",
    ]


async def test_where_nothing_is_found_nothing_is_asked_about_it() -> None:
    case = crp(Replying(Ways([A])), [], GRAPH)
    verdict = await case.run("?")
    assert case.prompts() == [EXPAND, EXPAND]
    assert verdict["status"] == "refused"


@pytest.mark.parametrize(("threshold", "status"), [(1.5001, "answered"), (1.4999, "refused")])
async def test_the_threshold_decides(threshold: float, status: str) -> None:
    case = crp(Replying(Ways([A])), [TOWER], Settings(shortcut=False, perplexity_threshold=threshold))
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
async def test_a_threshold_is_as_set_or_as_fitted_or_the_default_and_the_answer_says_which(
    store: Store, given: float | None, fitted: Threshold | None, holds: Threshold, status: str
) -> None:
    model = Replying(Ways([A]))
    runs = RunService(
        store, Services(model=model, retriever=Shelf([TOWER]), thresholds={VERIFY: fitted} if fitted else {})
    )
    values = {"shortcut": False} | ({"perplexity_threshold": given} if given else {})
    id = await runs.start("?", "crp-rag", values=values)
    answer = await finish(runs, id)
    assert answer.status == status
    assert answer.to_json()["threshold"] == holds
    assert await finish(RunService(store, Services(model=model, retriever=Shelf([TOWER]))), id) == answer


@pytest.mark.parametrize(
    ("others", "status"), [(["Ida Moll.", "ida moll", "X"], "answered"), (["Y", "X", "X"], "refused")]
)
async def test_without_log_probabilities_most_of_several_samples_must_agree(others: list[str], status: str) -> None:
    said = iter(["Ida Moll", *others])
    case = crp(Replying(lambda request: next(said) if request.prompt == VERIFY else Ways([A])(request)), [TOWER], GRAPH)
    verdict = await case.run("?")
    assert verdict["status"] == status
    assert case.prompts().count(VERIFY) == 4
    assert "no log-probabilities: knowledge suffices where most of 3 samples agree" in case.state["warnings"]


async def test_paths_that_share_a_step_and_differ_at_it_are_named() -> None:
    def reply_to(request: Request) -> Any:
        if request.prompt == LAST and request.input["step"] == C[0]:
            return {"answer": "Ostel" if request.input["known"][0]["question"] == A[0] else "Varn"}
        return model(request)

    model = Ways([A, C], [B, C])
    differ = f"Paths contradict each other at step 4, {C[0]!r}: {{!r}} by path 1>2>4, {{!r}} by path 1>3>4"
    lines = {differ.format("Ostel", "Varn"), differ.format("Varn", "Ostel")}  # samples come in any order
    for settings, said in ((GRAPH, True), (PAPER, False)):
        case = crp(Replying(reply_to), [TOWER], settings)
        verdict = await case.run("?")
        assert bool(lines & set(case.state["warnings"])) is said
        assert verdict["text"] in ("Ostel or Varn", "Varn or Ostel")


@pytest.mark.parametrize(
    ("other", "differs"), [("Ostel.", False), ("in  ostel", False), ("Ostelby", True), ("Varn", True), ("", False)]
)
async def test_the_same_result_in_more_words_is_no_contradiction(other: str, differs: bool) -> None:
    model = Ways([A, C], [B, C])

    def reply_to(request: Request) -> Any:
        if request.prompt == LAST and request.input["step"] == C[0]:
            return {"answer": "Ostel" if request.input["known"][0]["question"] == A[0] else other}
        return model(request)

    case = crp(Replying(reply_to), [TOWER], GRAPH)
    await case.run("?")
    assert any(warning.startswith("Paths contradict") for warning in case.state["warnings"]) is differs


async def test_sufficient_paths_that_find_nothing_leave_the_question_open() -> None:
    case = crp(
        Replying(lambda request: {"answer": ""} if request.prompt == LAST else Ways([A])(request)), [TOWER], GRAPH
    )
    verdict = await case.run("?")
    assert verdict == {"status": "unknown", "text": "", "citations": []}


# Ablations


async def test_without_aggregation_the_passages_are_read_as_they_are(chain: Chain) -> None:
    case = crp(Replying(Ways(way(chain))), chain.passages, Settings(shortcut=False, aggregate=False))
    verdict = await case.run(chain.question)
    assert AGGREGATE not in case.prompts()
    read = [request for request in case.model.requests if request.prompt in (VERIFY, STEP, LAST)]
    texts = [[source["text"] for source in request.input["sources"]] for request in read]
    assert texts == [[each.text for each in chain.passages]] * len(read)
    assert verdict["status"] == ("answered" if chain.answer else "refused")
    assert {citation["passage"] for citation in verdict["citations"]} <= {each.id for each in chain.passages}


async def test_without_verification_the_shortest_and_the_longest_path_answer() -> None:
    unknown = ("Who is the owner?", "")
    settings = Settings(verify=False, samples=3)
    case = crp(Replying(Ways([A, C], [("Where is it?", "Varn")], [unknown, C])), [TOWER], settings)
    verdict = await case.run("?")
    assert case.nodes == ["plan", "plan", *KNOW, "answer"]
    assert VERIFY not in case.prompts()
    assert list(case.state["notes"]) == ["path 1>3", "path 1>2", "path 1>2>5"]
    assert verdict["text"] == "Varn or Ostel"


async def test_without_iteration_each_path_is_answered_at_once() -> None:
    case = crp(Replying(Ways([A, C], [B, D])), [TOWER], Settings(shortcut=False, iterate=False, samples=2))
    verdict = await case.run("?")
    assert case.prompts()[-4:] == [VERIFY, PATH, PATH, INTEGRATE]
    read = [request.input for request in case.model.requests if request.prompt == PATH]
    assert {given["steps"] for given in read} == {(A[0], C[0]), (B[0], D[0])}  # samples come in any order
    assert all([source["title"] for source in given["sources"]] == list(given["steps"]) for given in read)
    assert set(verdict["text"].split(" or ")) == {"Ostel", "Varn"}


# What was handed over


def handed(question: str, finding: str) -> Any:
    return {"question": question, "finding": finding, "passages": []}


async def test_notes_and_passages_of_the_question_are_read_together() -> None:
    case = crp(Replying(Ways([("Who?", "Ida Moll")])), [TOWER])
    verdict = await case.run("Who?", {"1": handed(A[0], "Ida Moll"), "2": handed(B[0], "")})
    assert case.nodes == ["plan", *KNOW, "answer"]
    assert case.prompts() == [AGGREGATE, VERIFY, STEP]
    assert case.model.requests[1].input["sources"][0] == {"title": A[0], "text": "Ida Moll"}
    assert [source["title"] for source in case.model.requests[1].input["sources"]] == [A[0], "Who?"]
    assert [query.text for query in case.retriever.queries] == ["Who?"]
    assert verdict["text"] == "Ida Moll"
    assert list(case.state["notes"]) == ["1", "2", "path 1"]


async def test_a_step_that_a_note_answers_is_neither_searched_nor_asked_again() -> None:
    chain = example("q08")
    (one, found), (two, _) = way(chain)
    case = crp(Replying(Ways(way(chain))), chain.passages)
    verdict = await case.run(chain.question, {"path 1>2": handed(f" {one.upper()}", found), "x": handed("Why?", "")})
    assert case.nodes == ["plan", *KNOW, "plan", "plan", *KNOW, "answer"]
    assert case.prompts() == [AGGREGATE, VERIFY, *[EXPAND] * 4, AGGREGATE, VERIFY, LAST]
    assert case.retriever.asked() == [(chain.question, "graph", 5), (two, "graph", 5)]
    assert case.model.requests[2].input["known"][0] == {"question": f" {one.upper()}", "answer": found}
    assert verdict["text"] == chain.answer
    assert list(case.state["notes"]) == ["path 1>2", "x", "path 1>2>3"]


async def test_an_own_note_does_not_displace_one_of_the_same_key() -> None:
    case = crp(Replying(Ways([A])), [TOWER])
    await case.run("?", {"path 1>2": handed("Why?", "so")})
    assert {key: note["finding"] for key, note in case.state["notes"].items()} == {
        "path 1>2": A[1],
        "known path 1>2": "so",
    }


async def test_a_question_that_was_answered_before_is_answered_at_once() -> None:
    case = crp([], [TOWER])
    verdict = await case.run("Who?", {"answer": handed("who?", "Ida Moll")})
    assert case.nodes == ["plan", "answer"]
    assert (verdict["status"], verdict["text"]) == ("answered", "Ida Moll")


# Bad replies, the budget, and interruptions


async def test_no_reply_that_cannot_be_read_ends_a_run() -> None:
    case = crp(Replying(lambda request: ""), [TOWER])
    verdict = await case.run("Who?")
    assert verdict["status"] == "refused"
    assert verdict["text"].endswith("- Who? (nothing was found about it)")
    ends = ["Nothing is known about 'Who?'.", "The question itself is proposed as the last step."]
    assert [any(warning.endswith(end) for warning in case.state["warnings"]) for end in ends] == [True] * 2


UNREADABLE = {
    FUSE: "The first of the similar steps stands for all.",
    VERIFY: "counts as insufficient.",
    STEP: "Step 2 has no result.",
    LAST: "has no result.",
    PATH: "Path 1>2>5 has no answer.",
    INTEGRATE: "The first path's answer stands for all.",
    REWRITE: "The question is searched for as it is.",
}


@pytest.mark.parametrize("prompt", UNREADABLE)
async def test_a_reply_that_cannot_be_read_costs_its_step_only(prompt: str) -> None:
    model = Ways(*TWO_WAYS, [("?", "x")])
    settings = Settings(
        shortcut=False, samples=3, iterate=prompt != PATH, structure="text" if prompt == REWRITE else "graph"
    )
    replying = Replying(lambda request: "" if request.prompt == prompt else model(request))
    case = crp(replying, [TOWER], settings, embedder=HashingEmbedder() if prompt == FUSE else None)
    verdict = await case.run("?")
    assert any(UNREADABLE[prompt] in warning for warning in case.state["warnings"])
    assert verdict["status"] in ("answered", "refused", "unknown")


def two_ways(*, logprobs: bool = True) -> Replying:
    model = Ways(*TWO_WAYS)

    def reply_to(request: Request) -> Any:
        said = model(request)
        if request.prompt != VERIFY or logprobs:
            return said
        return f"perhaps {request.sampling.seed}" if said["text"] == "who knows" else said["text"]

    return Replying(reply_to)


@pytest.mark.parametrize("logprobs", [True, False])
@pytest.mark.sweep
async def test_a_run_never_makes_more_calls_than_it_may(logprobs: bool) -> None:
    settings = Settings(samples=3)
    full = crp(two_ways(logprobs=logprobs), [TOWER], settings, embedder=HashingEmbedder())
    whole = await full.run("?")
    assert whole["status"] == "answered" and {FUSE, INTEGRATE} <= set(full.prompts())
    needed = len(full.model.requests)
    for most in range(needed + 1):
        limited = Budget(max_calls=most)
        case = crp(two_ways(logprobs=logprobs), [TOWER], settings, embedder=HashingEmbedder(), budget=limited)
        verdict = await case.run("?")
        assert len(case.model.requests) == len(case.state["calls"]) <= most
        assert verdict["status"] == ("answered" if most == needed else "out_of_budget")
    before_the_last = await crp(
        two_ways(), [TOWER], Settings(samples=3), embedder=HashingEmbedder(), budget=Budget(max_calls=needed - 1)
    ).run("?")
    assert before_the_last["text"]


@pytest.mark.sweep
async def test_repairs_count_too() -> None:
    model = Ways([A, C], [B, C])

    def muddled() -> Replying:
        return Replying(lambda request: "no" if request.prompt in (STEP, LAST, INTEGRATE) else model(request))

    full = crp(muddled(), [TOWER], GRAPH)
    await full.run("?")
    for most in range(len(full.model.requests)):
        case = crp(muddled(), [TOWER], GRAPH, budget=Budget(max_calls=most))
        await case.run("?")
        assert len(case.model.requests) == len(case.state["calls"]) <= most


@pytest.mark.sweep
async def test_a_failure_anywhere_repeats_no_completed_call() -> None:
    settings = Settings(samples=3)
    whole = crp(two_ways(), [TOWER], settings, embedder=HashingEmbedder())
    expected = await whole.run("?")
    replies: dict[int, Any] = {}
    model = two_ways().answer
    for request in whole.model.requests:  # samples are told apart by their seeds alone
        replies[request.sampling.seed] = model(request)

    for failing in whole.model.requests:
        down = [failing.sampling.seed]

        def reply_to(request: Request, down: list[int] = down) -> Any:
            if request.sampling.seed in down:
                down.clear()
                return ModelUnavailable("down")
            return replies[request.sampling.seed]

        case = crp(Replying(reply_to), [TOWER], settings, embedder=HashingEmbedder())
        with pytest.raises(ModelUnavailable):
            await case.run("?")
        assert await case.run("?") == expected
        assert case.state["nodes"] == whole.state["nodes"]
        sent = Counter(request.sampling.seed for request in case.model.requests)
        again = [request for request in whole.model.requests if sent[request.sampling.seed] > 1]
        assert failing in again and {request.prompt for request in again} == {failing.prompt}
        assert len(again) <= 4  # nothing but what was in flight with it


# In a store of runs


async def test_a_stored_run_has_the_services_embedder_and_can_be_read_back(store: Store) -> None:
    runs = RunService(store, Services(model=two_ways(), retriever=Shelf([TOWER]), embedder=HashingEmbedder()))
    id = await runs.start("?", "crp-rag", values={"samples": 3})
    answer = await finish(runs, id)
    assert (answer.status, answer.text) == ("answered", "Ostel")
    assert not any("embedder" in warning for warning in answer.warnings)
    assert answer.cost["nodes"].keys() == {"plan", "aggregate", "verify", "answer"}
    visited = [
        moment.node
        for moment in reversed(await list_checkpoints(runs, id))
        if moment.node and moment.node != ["__start__"]
    ]
    assert visited == [[node] for node in ["plan", *KNOW, "plan", "plan", *KNOW, "answer"]]


async def test_a_fork_from_par_rag_starts_with_its_notes(store: Store) -> None:
    chain = example("q08")
    ways = Ways(way(chain), [(chain.question, chain.answer)])
    model = Replying(lambda request: ways(request) if request.role in CRP_ROLES else chain.reply_to(request))
    runs = RunService(store, Services(model=model, retriever=Shelf(chain.passages)))
    id = await runs.start(chain.question, "par-rag")
    await finish(runs, id)
    answered = next(moment for moment in await list_checkpoints(runs, id) if moment.node == ["review"])
    asked = len(model.requests)
    forked = await fork_run(runs, id, at=answered.checkpoint, into="crp-rag")
    answer = await finish(runs, forked["thread"])
    assert (answer.text, answer.status) == (chain.answer, "answered")
    assert [request.prompt for request in model.requests[asked:]] == [AGGREGATE, VERIFY, STEP]
    assert {citation["passage"] for citation in answer.citations} == {"q08-1", "q08-2"}


@pytest.mark.sweep
async def test_a_fork_from_any_checkpoint_comes_to_the_same_end(store: Store) -> None:
    def steady(request: Request) -> Any:  # both samples are the same, so that a fork sees the same graph
        return Ways([A, C])(request)

    model = Replying(steady)
    runs = RunService(store, Services(model=model, retriever=Shelf([TOWER])))
    id = await runs.start("?", "crp-rag")
    first = await finish(runs, id)
    moments = await list_checkpoints(runs, id)
    for moment in moments[1:-1]:
        await fork_run(runs, id, at=moment.checkpoint)
        assert (await finish(runs, id)).text == first.text
