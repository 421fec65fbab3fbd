"""RAS's trajectories: nodes in order, prompts asked, queries made, the graph that grows, and what comes of it."""

from pathlib import Path
from typing import Any

import pytest
from all_roles_model import AllRolesModel, finds
from hypothesis import given
from hypothesis import strategies as st
from retro_scenes import FailingOnce
from scenes import Replying, Shelf, ask, example, passage, structured
from scripted_model import ScriptedModel
from told import Told

from sleuth.agents.model import Request
from sleuth.agents.roles.reading import MAX_TRIPLES
from sleuth.graphs.core.context import Budget, Services
from sleuth.graphs.core.triples import MemoryTriples
from sleuth.graphs.evidence.answer_text import with_marks
from sleuth.graphs.methods.ras.graph import Settings, summarize
from sleuth.graphs.methods.ras.triple_graph import entity_key
from sleuth.graphs.persistence.store import Store
from sleuth.graphs.registry import configure, method
from sleuth.graphs.runs.service import RunService
from sleuth.tools.errors import ModelUnavailable, UsageError
from sleuth.tools.types import Passage

PAPER = Settings().as_in_paper()
UNCHECKED = Settings(grounded=False)
ROUND = ["retrieve", "structure"]
ENOUGH = {"plan": "[SUFFICIENT]", "finding": "", "facts": []}


def triples(*those: tuple[str, str, str]) -> list[dict[str, str]]:
    return [dict(zip(("subject", "predicate", "object"), one, strict=True)) for one in those]


def next_(query: str, finding: str = "", *facts: int) -> dict[str, Any]:
    return {"finding": finding, "facts": list(facts), "plan": "[SUBQ]", "query": query}


def final(answer: str, *facts: int, known: bool = True) -> dict[str, Any]:
    return {"facts": list(facts), "answer": answer, "known": known}


# Ablations


async def test_ras_question_without_retrieval_is_answered_unaided() -> None:
    case = structured(["[NO_RETRIEVAL]", {"answer": "4", "known": True}], Shelf([TOWER]))
    verdict = await case.run("What is 2 and 2?")
    assert case.nodes == ["plan", "answer"]
    assert case.prompts() == ["planner/begin", "answerer/unaided"]
    assert case.retriever.queries == []
    assert verdict == {"status": "answered", "text": "4", "citations": []}
    assert case.state["warnings"] == ["no passage supports this answer word for word"]


TOWER = passage("tower", "The tower stands in Varn. It is 30 m high. Nobody lives there.")
BRIDGE = passage("bridge", "The bridge is in Ostel.\nIt was built in 1802 by Ida Moll, who was born in Varn.", at=7)
IN_VARN = ("The tower", "stands in", "Varn")
BORN = ("Ida Moll", "born in", "Varn")
BUILT = ("bridge", "built by", "Ida Moll")


async def test_ras_without_triples_shows_passages() -> None:
    said = ["[SUBQ]", next_("Who built the bridge?"), {**ENOUGH, "finding": "Ida Moll", "facts": [2]}]
    retriever = Shelf([], found={"?": [TOWER], "Who built the bridge?": [TOWER, BRIDGE]})
    case = structured([*said, final("Varn", 1, 2, 7)], retriever, Settings(triples=False))
    verdict = await case.run("?")
    assert case.nodes == ["plan", *[*ROUND, "plan"] * 2, "answer"]
    assert "extractor/extract" not in case.prompts()
    shown = [(source["query"], source["text"]) for source in case.model.requests[-1].input["sources"]]
    assert shown == [(2, f"[2] Bridge\n{BRIDGE.text}"), (1, f"[1] Tower\n{TOWER.text}")]
    assert [citation["passage"] for citation in verdict["citations"]] == ["tower", "bridge"]
    assert case.state["warnings"] == ["dropped a citation of fact 7: there is no such fact"]
    assert not case.state["facts"]


# The graph


async def test_merge_triples_joins_equal_entities_and_facts() -> None:
    again = [triples(IN_VARN), triples(BUILT, BORN, ("the  Tower", "Stands in", "“VARN”"), ("It", "built in", "1802"))]
    case = structured(["[SUBQ]", *again, ENOUGH, final("Varn", 1)], Shelf([TOWER, BRIDGE]), UNCHECKED)
    verdict = await case.run("?")
    names = {"tower": "The tower", "varn": "Varn", "bridge": "bridge", "ida moll": "Ida Moll"}
    assert case.state["entities"] == names
    facts = case.state["facts"]
    assert [(fact["subject"], fact["object"], fact["passages"]) for fact in facts.values()] == [
        ("tower", "varn", ["tower", "bridge"]),
        ("bridge", "ida moll", ["bridge"]),
        ("ida moll", "varn", ["bridge"]),
    ]
    assert [citation["passage"] for citation in verdict["citations"]] == ["tower"]


VARN = passage("text", "Varn is old. Ida Moll wrote. Ida Moll was born in Varn. Varn lies low.")


@pytest.mark.parametrize(
    ("text", "facts", "said", "quote"),
    [
        (VARN, [BORN], final("Varn", 1), "Ida Moll was born in Varn."),
        (BRIDGE, [BUILT, BORN], final("ida moll"), BRIDGE.text.split("\n")[1]),
        (BRIDGE, [("moon", "of", "cheese"), BORN], final("Varn", 1), BRIDGE.text.split("\n")[1]),
    ],
    ids=["sentence with the whole triple", "fact that names the answer", "fact that names it, not the wrong one"],
)
async def test_ras_cites_sentence_of_fact(text: Passage, facts: list[Any], said: dict[str, Any], quote: str) -> None:
    case = structured(["[SUBQ]", triples(*facts), ENOUGH, said], Shelf([text]), UNCHECKED)
    assert [citation["quote"] for citation in (await case.run("?"))["citations"]] == [quote]
    assert len(case.state["warnings"]) == sum("moon" in fact for fact in facts)


async def test_ras_invents_no_citation() -> None:
    lie = ("The moon", "made of", "cheese")
    case = structured(["[SUBQ]", triples(lie), ENOUGH, final("cheese", 1, 9)], Shelf([TOWER]), UNCHECKED)
    verdict = await case.run("?")
    assert verdict == {"status": "answered", "text": "cheese", "citations": []}
    assert case.state["warnings"] == [
        "dropped a citation of fact 1: its passage does not contain it word for word",
        "dropped a citation of fact 9: there is no such fact",
        "no passage supports this answer word for word",
    ]


async def test_ras_reads_each_passage_once_across_runs() -> None:
    kept = MemoryTriples()
    first = structured(["[SUBQ]", triples(IN_VARN), ENOUGH, final("Varn", 1)], Shelf([TOWER]))
    second = structured(["[SUBQ]", triples(BORN), ENOUGH, final("Varn", 1)], Shelf([TOWER, BRIDGE]))
    await first.run("?", triples=kept)
    verdict = await second.run("?", triples=kept)
    assert second.model.requests[1].input["sources"][0]["title"] == "Bridge"
    assert second.state["facts"]["1"]["subject"] == "tower"
    assert [citation["passage"] for citation in verdict["citations"]] == ["tower"]
    third = structured(["[SUBQ]", ENOUGH, final("Varn", 1)], Shelf([TOWER, BRIDGE]))
    await third.run("?", triples=kept)
    assert third.nodes == ["plan", *ROUND, "plan", "answer"]


@pytest.mark.parametrize("repeat", [False, True])
async def test_ras_reads_a_repeated_passage_once_and_shows_its_fact_again_only_if_repeated(repeat: bool) -> None:
    replies = ["[SUBQ]", triples(IN_VARN), next_("Where?"), triples(BORN), ENOUGH, final("Varn", 1)]
    shelf = Shelf([], found={"?": [TOWER], "Where?": [TOWER, BRIDGE]})
    case = structured(replies, shelf, Settings(repeat_facts=repeat))
    await case.run("?")
    case.model.done()  # type: ignore[union-attr]
    assert [fact["round"] for fact in case.state["facts"].values()] == ["1", "2"]
    facts = [(source["query"], source["text"].split("]")[0]) for source in case.model.requests[-1].input["sources"]]
    assert sorted(facts) == [(1, "[1"), *([(2, "[1")] if repeat else []), (2, "[2")]


async def test_paper_run_asks_for_decisions_only_and_always_answers() -> None:
    unsure = final("Varn", known=False)
    model = ScriptedModel(
        {"planner": ["[SUBQ]", {"plan": "[SUFFICIENT]"}], "extractor": [triples(BORN)], "answerer": [unsure]}
    )
    case = structured(model, Shelf([TOWER]), PAPER)
    verdict = await case.run("Where is the tower?")
    assert (verdict["status"], verdict["text"]) == ("answered", "Varn")
    assert case.prompts() == ["planner/begin", "extractor/extract", "planner/next", "answerer/from_facts"]
    (query,) = case.retriever.queries
    assert (query.text, query.mode, query.k) == ("Where is the tower?", "dense", 5)
    assert case.state["facts"]  # also those whose names the passage does not have
    assert model.requests[-1].input["question"] == "Where is the tower?"


# Long answers


def long(*sentences: tuple[str, list[int]], known: bool = True) -> dict[str, Any]:
    return {"sentences": [{"text": text, "facts": facts} for text, facts in sentences], "known": known}


async def test_long_answer_cites_the_facts_of_each_sentence() -> None:
    said = ["[SUBQ]", triples(IN_VARN), triples(BUILT, BORN), ENOUGH]
    sentences = ("A tower stands in Varn [1].", [1]), (" ", []), ("Ida Moll came from there.", [1, 3, 9])
    case = structured([*said, long(*sentences)], Shelf([TOWER, BRIDGE]), Settings(long_answers=True))
    verdict = await case.run("What is in Varn?")
    assert case.prompts()[-1] == "answerer/long_from_facts"
    assert verdict["text"] == "A tower stands in Varn. Ida Moll came from there."
    quotes = [citation["quote"] for citation in verdict["citations"]]
    assert quotes == ["The tower stands in Varn.", "It was built in 1802 by Ida Moll, who was born in Varn."]
    one, two = (case.state["notes"][f"sentence {at}"] for at in (1, 2))
    assert (one["finding"], one["passages"]) == ("A tower stands in Varn.", ["tower"])
    assert (two["finding"], two["passages"]) == ("Ida Moll came from there.", ["tower", "bridge"])
    assert [citation["sentence_ends"] for citation in verdict["citations"]] == [[23, 49], [49]]
    assert with_marks(verdict["text"], verdict["citations"]).text == (
        "A tower stands in Varn. [1] Ida Moll came from there. [1] [2]"
    )
    assert not any("sentence_ends" in citation for note in (one, two) for citation in note["citations"])
    assert "answer" not in case.state["notes"]
    assert case.state["warnings"] == ["dropped a citation of fact 9: there is no such fact"]


async def test_long_answer_is_unknown_if_it_is_empty_or_a_guess() -> None:
    for answer in (long(), long(("Perhaps it is high.", []), known=False)):
        case = structured(["[SUBQ]", triples(IN_VARN), ENOUGH, answer], Shelf([TOWER]), Settings(long_answers=True))
        assert (await case.run("?"))["status"] == "unknown"


async def test_ras_failed_extraction_is_not_stored() -> None:
    kept = MemoryTriples()
    said = ["[SUBQ]", "I think.", triples(BORN), "Still thinking.", ENOUGH, final("Varn", 1)]
    model = ScriptedModel({"planner": [said[0], said[4]], "answerer": said[5:], "extractor": ["I think.", "No."]})
    case = structured(model, Shelf([TOWER]))
    await case.run("?", triples=kept)
    assert kept.kept == {}
    assert case.state["warnings"][0].endswith("Passage tower adds no facts.")


@pytest.mark.parametrize(
    ("triple", "stands"),
    [
        (IN_VARN, True),
        (("TOWER", "height", "30 m"), True),
        (("Tower of Varn", "known for", "being high"), True),
        (("The tower", "built by", "Ada Reyes"), False),
        (("Lord of the Isles", "lives in", "Varn"), False),
        (("The tower", "built in", "1871"), False),
        (("塔", "in", "Varn"), False),
    ],
)
async def test_ras_drops_ungrounded_triple(triple: tuple[str, str, str], stands: bool) -> None:
    case = structured(["[SUBQ]", triples(triple), ENOUGH, final("?", known=False)], Shelf([TOWER]))
    await case.run("?")
    assert bool(case.state["facts"]) is stands
    assert case.state["warnings"] == ([] if stands else ["dropped triples whose names tower does not have: 1"])
    case = structured(["[SUBQ]", triples(triple), ENOUGH, final("?", known=False)], Shelf([TOWER]), UNCHECKED)
    await case.run("?")
    assert case.state["facts"]


async def test_ras_passage_at_fact_limit_is_named() -> None:
    many = triples(*(("Varn", "has", f"house {at}") for at in range(MAX_TRIPLES)))
    case = structured(["[SUBQ]", many, ENOUGH, final("Varn", 1)], Shelf([TOWER]))
    await case.run("?")
    assert "tower may hold more facts: no more than 16 are asked for from one passage" in case.state["warnings"]


async def test_ras_answer_contains_graph(store: Store) -> None:
    chain = example("q08")
    runs = RunService(store, Services(model=Replying(AllRolesModel(chain).reply_to), retriever=finds(chain)))
    answer = await ask(runs, chain.question, "ras")
    first, second = (hop.asked.rstrip("?") for hop in chain.hops)
    one, two = (hop.passage.id for hop in chain.hops)
    names = [first, "Trevandle & Ruske", second, "1868"]
    relations = [(first, "Trevandle & Ruske", one), (second, "1868", two)]
    assert answer.to_json()["graph"] == {
        "nodes": [{"id": entity_key(name), "name": name} for name in names],
        "edges": [
            {"subject": entity_key(subject), "predicate": "is", "object": entity_key(object), "passages": [id]}
            for subject, object, id in relations
        ],
    }


async def test_ras_notes_are_answers_and_facts_that_lead_to_one() -> None:
    chain = example("q24")
    case = structured(Replying(AllRolesModel(chain).reply_to), finds(chain))
    await case.run(chain.question)
    first, *rest = chain.hops
    found = [(note["question"], note["finding"]) for key, note in case.state["notes"].items() if key != "answer"]
    assert found == [(f"{first.asked.rstrip('?')} – is?", first.answer), *((hop.asked, hop.answer) for hop in rest)]


async def test_ras_small_context_drops_worst_facts() -> None:
    long = " ".join("x" * 70)
    facts = [
        triples(*((f"{name} {at}", "has", long) for at in range(MAX_TRIPLES - 1)))
        for name in ("Tower", "Bridge", "Hill")
    ]
    model = ScriptedModel(["[SUBQ]", *facts, ENOUGH, final("x", known=False)], context_window=3100)
    case = structured(model, Shelf([TOWER, BRIDGE, passage("hill", "The hill is high.")]), UNCHECKED)
    await case.run("?")
    shown = [source["text"].split(" | ")[0] for source in model.requests[-2].input["sources"]]
    assert shown == ["[1] S> Tower 0", "[16] S> Bridge 0"]
    (warning, *_) = case.state["warnings"]
    assert warning == "planner/next_with_finding: 1 of 3 passages left out: the model's context is too small"


# Bounds


@pytest.mark.parametrize("most", [1, 3, 5])
async def test_ras_rounds_are_bounded(most: int) -> None:
    asked = (next_(f"question {at}?") for at in range(100))
    model = ScriptedModel({"planner": ["[SUBQ]", *asked], "extractor": [[]], "answerer": [final("?", known=False)]})
    case = structured(model, Shelf([TOWER]), Settings(max_iterations=most))
    await case.run("?")
    assert case.nodes == ["plan", *[*ROUND, "plan"] * most, "answer"]
    assert len(case.retriever.queries) == most


async def test_ras_repeated_sub_query_ends_the_loop() -> None:
    case = structured(["[SUBQ]", triples(IN_VARN), next_(" where IS  the Tower "), final("Varn", 1)], Shelf([TOWER]))
    verdict = await case.run("Where is the tower?")
    assert case.nodes == ["plan", *ROUND, "plan", "answer"]
    assert case.state["decision"] == "[SUFFICIENT]"
    assert case.state["warnings"] == [
        "The planner asked again 'where IS  the Tower': the question is answered with what was found."
    ]
    assert verdict["status"] == "answered"


@given(st.text(max_size=20))
def test_entity_key_is_idempotent(name: str) -> None:
    assert entity_key(entity_key(name)) == entity_key(name)


@pytest.mark.parametrize("other", ["the Tower", "“tower”", " TOWER.", "a  tower", "Ｔower", "The 'Tower'"])
def test_entity_key_of_equal_names_is_equal(other: str) -> None:
    assert entity_key(other) == entity_key("tower")


@pytest.mark.parametrize(("one", "other"), [("C", "C++"), ("1.5", "15"), ("Anna", "na"), ("Theodor", "odor")])
def test_entity_key_of_different_names_differs(one: str, other: str) -> None:
    assert entity_key(one) != entity_key(other)


# Inherited notes


async def test_ras_inherited_notes_are_known() -> None:
    chain = example("q08")
    notes: Any = {
        f"handed over {at}": {"question": hop.asked, "finding": hop.answer, "passages": []}
        for at, hop in enumerate(chain.hops, 1)
    }
    case = structured([ENOUGH, final("1868")], Shelf([]))
    case.model = ScriptedModel([ENOUGH, {**ENOUGH, "finding": ""}, final("1868")])
    verdict = await case.run(chain.question, notes)
    assert case.nodes == ["plan", "retrieve", "structure", "plan", "answer"]
    assert [query.text for query in case.retriever.queries] == [chain.question]
    told = tuple({"question": hop.asked, "answer": hop.answer} for hop in chain.hops)
    assert [request.input["known"] for request in case.model.requests] == [told, told, told]
    assert verdict["text"] == "1868"


# The budget, and interruptions


async def test_ras_extraction_requires_budget_for_all_passages() -> None:
    case = structured(["[SUBQ]"], Shelf([TOWER, BRIDGE]), budget=Budget(max_calls=2))
    verdict = await case.run("?")
    assert case.nodes == ["plan", *ROUND, "answer"]
    assert verdict == {"status": "out_of_budget", "text": "", "citations": []}


def about_the_bridge(request: Request) -> Any:
    match request.prompt:
        case "planner/begin":
            return "[SUBQ]"
        case "extractor/extract":
            return triples(IN_VARN) if request.input["sources"][0]["title"] == "Tower" else triples(BUILT, BORN)
        case "answerer/from_facts":
            return final("Varn", 3)
    return next_("Who built it?") if len(request.input["queries"]) == 1 else {**ENOUGH, "finding": "Ida Moll"}


async def test_ras_cache_filled_while_stopped_keeps_assignment() -> None:
    kept = MemoryTriples()
    case = structured(FailingOnce(about_the_bridge, fails_at=3), Shelf([TOWER, BRIDGE]))
    with pytest.raises(ModelUnavailable):
        await case.run("?", triples=kept)
    other = structured(Replying(about_the_bridge), Shelf([TOWER]))
    await other.run("?", triples=kept)
    await case.run("?", triples=kept)
    assert {fact["subject"]: fact["passages"] for fact in case.state["facts"].values()} == {
        "tower": ["tower"],
        "bridge": ["bridge"],
        "ida moll": ["bridge"],
    }


async def test_ras_graph_model_receives_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sleuth.agents.graph_encoder.ModelWithGraph", Told)  # the real one needs torch
    for name in ("graph.json", "graph.safetensors"):
        (tmp_path / name).touch()
    chain, folder = example("q08"), str(tmp_path)
    plain = structured(Replying(AllRolesModel(chain).reply_to), finds(chain))
    case = structured(Replying(AllRolesModel(chain).reply_to), finds(chain), Settings(graph_model=folder))
    assert await case.run(chain.question) == await plain.run(chain.question)
    told = [(each.prompt, each.soft_token) for each in case.model.requests]
    assert told == [
        ("planner/begin", None),
        ("extractor/extract", None),
        ("planner/next_with_finding", f"{folder} 1 1"),
        ("extractor/extract", None),
        ("planner/next_with_finding", f"{folder} 2 2"),
        ("answerer/from_facts", f"{folder} 2 2"),
    ]
    assert [each.messages for each in case.model.requests] == [each.messages for each in plain.model.requests]
    without = structured(
        Replying(AllRolesModel(chain).reply_to), finds(chain), Settings(graph_model=folder, triples=False)
    )
    await without.run(chain.question)
    assert {each.soft_token for each in without.model.requests} == {None}


def test_ras_refuses_folder_without_graph_model(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"graph_model: .* holds no graph model"):
        configure(method("ras"), {"graph_model": str(tmp_path)}, "default")


def test_ras_step_counts_its_relations() -> None:
    assert summarize({"facts": {"1": {}, "2": {}}}) == ["relations, new or in further passages: 2"]
    assert summarize({}) == []
