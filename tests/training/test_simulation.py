"""The simulated model: answers, errors, usage, gold and parameters."""

import dataclasses
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sleuth import prompts
from sleuth.agents.formatting import Source, Step
from sleuth.agents.model import Message, Reply, Request, perplexity
from sleuth.agents.role import NAMES, Role
from sleuth.agents.roles.inputs import QuestionInput, SourcesInput, StepsInput
from sleuth.agents.roles.judging import ASKS_ALL, VERIFY
from sleuth.agents.roles.planning import EXPAND, PLAN, ExpandInput, Plan
from sleuth.agents.roles.reading import ANSWER_UNAIDED, DRAFT, Draft
from sleuth.tools.errors import UsageError
from training.simulation import Gold, SimulatedModel, Simulation, gold_of, gold_on_pages
from training.simulation.model import HANDLERS
from training.simulation.parameters import ERRORS, ROLES

PASSAGES = {
    "light": ("Pellowrig Light", "The light stands on a reef. It was built by Bastian Oake in 1861."),
    "oake": ("Bastian Oake", "An engineer of lighthouses. He was born in Sennick Harbour, a pilot's son."),
    "town": ("Sennick Harbour", "A fishing town. The Kelp Fair is held there each autumn."),
}
STEPS = [
    {"question": "Who built the Pellowrig Light?", "answer": "Bastian Oake", "gold_id": "light"},
    {"question": "In which town was #1 born?", "answer": "Sennick Harbour", "gold_id": "oake"},
    {"question": "Which fair is held in #2?", "answer": "Kelp Fair", "gold_id": "town"},
]
ROW = {
    "id": "fair",
    "question": "Which fair is held in the birthplace of the builder of the Pellowrig Light?",
    "answer": "Kelp Fair",
    "gold_ids": ["light", "oake", "town"],
    "decomposition": STEPS,
}
GOLD = gold_of(ROW, PASSAGES)
ELSEWHERE = Source(title="Quarve", text="Gunnora Yoll opened a dairy at Quarve Haven in 1902.")
HOPS = [
    ("Who built the Pellowrig Light?", "Bastian Oake", "light"),
    ("In which town was Bastian Oake born?", "Sennick Harbour", "oake"),
    ("Which fair is held in Sennick Harbour?", "Kelp Fair", "town"),
]


def source(id: str) -> Source:
    return Source(title=PASSAGES[id][0], text=PASSAGES[id][1])


def errors(**rates: float) -> Simulation:
    return Simulation(rates={name.replace("_", "-"): rate for name, rate in rates.items()})


def request(role: Role[Any, Any], input: Any, seed: int = 0) -> Request:
    sampling = dataclasses.replace(role.sampling, seed=seed)
    text = " ".join(role.render(input).values())
    messages = (Message(role="user", content=text),)
    return Request(
        call_id="1", role=role.name, prompt=role.prompt, messages=messages, input=asdict(input), sampling=sampling
    )


async def reply(
    role: Role[Any, Any], input: Any, simulation: Simulation | None = None, *, gold: Gold = GOLD, seed: int = 0
) -> Reply:
    return await SimulatedModel(gold, simulation or errors()).call(request(role, input, seed))


async def drafted(question: str, *sources: Source, simulation: Simulation | None = None) -> Draft:
    said = await reply(DRAFT, SourcesInput(question=question, sources=sources), simulation)
    return Draft.model_validate_json(said["text"])


# Coverage


def test_handlers_cover_every_prompt_of_a_method() -> None:
    others = {"planner/survey", "answerer/survey", "planner/outline", "answerer/section"}
    without_method = ("shared/", "questioner/", "judge/", "router/", "rewriter/", "host/")
    asked = {name for name in prompts.names() if not name.startswith(without_method)} - others
    assert asked == HANDLERS.keys(), "add the missing handlers to training/simulation/model.py"


def test_parameters_cover_every_role_and_error() -> None:
    assert ROLES.keys() == set(NAMES) - {"questioner", "judge", "router", "rewriter", "host"}
    assert {kind for kinds in ROLES.values() for kind in kinds} == ERRORS.keys()


# Answers


@given(shown=st.sets(st.sampled_from(sorted(PASSAGES))), hop=st.sampled_from(HOPS))
async def test_draft_answers_only_with_the_gold_passage_and_cites_it(
    shown: set[str], hop: tuple[str, str, str]
) -> None:
    question, answer, id = hop
    found = await drafted(question, ELSEWHERE, *map(source, sorted(shown)))
    assert found.answer == (answer if id in shown else "")
    assert [cited.source for cited in found.citations] == ([2 + sorted(shown).index(id)] if id in shown else [])
    assert all(cited.quote in PASSAGES[id][1] for cited in found.citations)


@given(shown=st.sets(st.sampled_from(sorted(PASSAGES))))
async def test_draft_of_whole_question_needs_every_passage(shown: set[str]) -> None:
    found = await drafted(GOLD.question, *map(source, sorted(shown)))
    assert found.answer == ("Kelp Fair" if len(shown) == 3 else "")


@pytest.mark.parametrize(
    ("question", "title", "text", "answer"),
    [
        ("In which town was Gunnora Yoll born?", *PASSAGES["oake"], ""),
        (HOPS[1][0], "Bastian Oake", PASSAGES["oake"][1][30:], "Sennick Harbour"),
        (HOPS[1][0], "Bastian Oake", PASSAGES["oake"][1][:40], ""),
        (HOPS[1][0], "News", "In this town, Sennick Harbour, the engineer Bastian Oake was born.", "Sennick Harbour"),
    ],
)
async def test_draft_needs_the_evidence_about_its_subject(question: str, title: str, text: str, answer: str) -> None:
    assert (await drafted(question, Source(title=title, text=text))).answer == answer


async def test_draft_of_unanswerable_question_is_empty() -> None:
    row = ROW | {"answer": "", "decomposition": [*STEPS[:2], STEPS[2] | {"answer": ""}]}
    gold = gold_of(row, PASSAGES)
    said = await reply(DRAFT, SourcesInput(question=GOLD.question, sources=(source("town"),)), gold=gold)
    assert Draft.model_validate_json(said["text"]).answer == ""


async def test_closed_book_rate_decides_per_question() -> None:
    known = [
        (await reply(ANSWER_UNAIDED, QuestionInput(question=GOLD.question), errors(closed_book=rate)))["text"]
        for rate in (0.0, 1.0)
    ]
    assert ["Kelp Fair" in text for text in known] == [False, True]


# Plans


async def test_plan_has_the_unknown_hops_with_their_needs_and_known_answers() -> None:
    said = await reply(PLAN, StepsInput(question=GOLD.question))
    plan = Plan.model_validate_json(said["text"])
    assert [step.needs for step in plan.steps] == [[], [1], [2]]
    assert plan.steps[1].question == "In which town was the person who built the Pellowrig Light born?"
    known = (Step(question=HOPS[0][0], answer="Bastian Oake"),)
    said = await reply(PLAN, StepsInput(question=GOLD.question, known=known))
    assert Plan.model_validate_json(said["text"]).steps[0].question == HOPS[1][0]


# Judgements


async def test_verify_perplexity_is_low_only_with_evidence() -> None:
    questions = [f"Who built the Pellowrig Light{' indeed' * times}?" for times in range(30)]
    measured = {}
    for name, shown in (("evidence", source("light")), ("none", ELSEWHERE)):
        replies = [await reply(VERIFY, SourcesInput(question=asked, sources=(shown,))) for asked in questions]
        measured[name] = sorted(found for said in replies if (found := perplexity(said)) is not None)
    assert measured["evidence"][15] == pytest.approx(1.25, abs=0.15)
    assert measured["none"][15] == pytest.approx(8.0, abs=4.0)
    assert measured["evidence"][-2] < 2.0 < measured["none"][5]


async def test_question_about_the_collection_is_judged_with_its_probability() -> None:
    said = await reply(ASKS_ALL, QuestionInput(question="How many lights are there?"))
    assert (said["text"], bool(said["logprobs"])) == ("No", True)


# Errors


@pytest.mark.parametrize(("kind", "answer"), [("missed", [""]), ("invented", ["Gunnora Yoll", "Quarve Haven"])])
async def test_errors_occur_at_their_rate(kind: str, answer: list[str]) -> None:
    asked = [f"Who built the Pellowrig Light{' indeed' * times}?" for times in range(100)]
    right = (source("light"), ELSEWHERE)
    found = [(await drafted(each, *right, simulation=errors(**{kind: 0.3}))).answer for each in asked]
    wrong = [each for each in found if each != "Bastian Oake"]
    assert 15 < len(wrong) < 45
    assert set(wrong) <= {*answer, "Quarve"}


async def test_guess_replaces_a_missing_answer_at_the_rate_of_its_role() -> None:
    guessing = errors(guessed=1.0)
    assert (await drafted(HOPS[0][0], source("light"), simulation=guessing)).answer == "Bastian Oake"
    assert (await drafted(HOPS[0][0], ELSEWHERE, simulation=guessing)).answer not in ("", "Bastian Oake")
    assert (await drafted(HOPS[0][0], source("light"), simulation=errors(reader=1.0))).answer == "Bastian Oake"
    assert (await drafted(HOPS[0][0], source("light"), simulation=errors(drafter=1.0))).answer != "Bastian Oake"


# Randomness


async def test_replies_do_not_depend_on_the_order_of_calls() -> None:
    simulation = Simulation(seed=3, rates={"missed": 0.5, "invented": 0.5})
    requests = [request(DRAFT, SourcesInput(question=q, sources=(source(id), ELSEWHERE))) for q, _, id in HOPS] * 2
    requests += [request(EXPAND, ExpandInput(question=GOLD.question, steps=()), seed) for seed in range(9)]
    forth, back = SimulatedModel(GOLD, simulation), SimulatedModel(GOLD, simulation)
    one = [await forth.call(each) for each in requests]
    other = [await back.call(each) for each in reversed(requests)][::-1]
    assert [(each["text"], each["logprobs"]) for each in one] == [(each["text"], each["logprobs"]) for each in other]
    cached = [sum(each["usage"]["cached_tokens"] for each in replies) for replies in (one, other)]
    assert cached[0] == cached[1] > 0
    elsewhere = SimulatedModel(GOLD, simulation.model_copy(update={"seed": 4}))
    assert [each["text"] for each in one] != [(await elsewhere.call(each))["text"] for each in requests]


# Gold


def test_gold_from_2wiki_triples() -> None:
    row = {
        "question": "Where was the performer of Changed It born?",
        "answer": "Port of Spain",
        "gold_ids": ["minaj", "song"],
        "evidence_triples": [["Changed It", "performer", "Ada M"], ["Ada M", "place of birth", "Port of Spain"]],
    }
    gold = gold_of(
        row, {"song": ("Changed It", "A song by Ada M."), "minaj": ("Ada M (singer)", "From Port of Spain.")}
    )
    assert gold.origin == "triples"
    assert [(hop.question, hop.passage) for hop in gold.hops] == [
        ("What is the performer of Changed It?", "song"),
        ("What is the place of birth of #1?", "minaj"),
    ]


@pytest.mark.parametrize(
    ("question", "answer", "passages", "hops"),
    [
        (
            "Which town is the home of the maker of Nine Tides?",
            "Varn",
            {"a": ("Oda Brell", "A painter. She lived in Varn."), "b": ("Nine Tides", "A window by Oda Brell.")},
            [("b", "Oda Brell", []), ("a", "Varn", [1])],
        ),
        (  # "#1" is no reference
            "Who sang the #1 hit of 1961?",
            "Oda Brell",
            {"a": ("Hits of 1961", "At #1: Nine Tides."), "b": ("Nine Tides", "A song by Oda Brell.")},
            [("a", "Nine Tides", []), ("b", "Oda Brell", [1])],
        ),
    ],
)
def test_gold_from_hotpotqa_passages_links_them(
    question: str, answer: str, passages: dict[str, tuple[str, str]], hops: list[tuple[str, str, list[int]]]
) -> None:
    gold = gold_of({"question": question, "answer": answer, "gold_ids": ["a", "b"]}, passages)
    assert gold.origin == "derived"
    assert [(hop.passage, hop.answer, hop.needs()) for hop in gold.hops] == hops


def test_gold_of_a_comparison_is_not_a_chain() -> None:
    row = ROW | {"question": "Which is older, A or B?", "answer": "A", "type": "comparison"}
    assert not gold_of(row, PASSAGES).is_chain()
    assert GOLD.is_chain()


WEIR = {
    "page": (
        "The weir",
        "The weir house was built by Rosa Quill.\nIt was kept by Ida Moll and by Tom Ash, her nephew.",
    ),
    "fair": ("The fair", "Ida Moll sang there.\n| Keeper | From |\n| Tom Ash | 1850 |"),
}


@pytest.mark.parametrize(
    ("question", "answer", "evidence"),
    [
        ("Who kept the weir house?", "Ida Moll and Tom Ash", "It was kept by Ida Moll and by Tom Ash, her nephew."),
        ("From when on did Tom Ash keep it?", "Tom Ash did from 1850.", "| Tom Ash | 1850 |"),
        ("Was the weir house built by Rosa Quill?", "yes", "The weir house was built by Rosa Quill."),
    ],
)
def test_gold_on_pages_selects_the_unit_with_most_answer_words(question: str, answer: str, evidence: str) -> None:
    gold = gold_on_pages({"question": question, "answer": answer}, WEIR)
    assert (gold.origin, gold.answer) == ("derived", answer)
    assert [(hop.question, hop.answer, hop.evidence) for hop in gold.hops] == [(question, answer, evidence)]


def test_gold_on_pages_needs_the_answer_and_contradicts_a_false_premise() -> None:
    assert gold_on_pages({"question": "Who keeps the weir house today?", "answer": "Lena Holt"}, WEIR).hops == ()
    assert gold_on_pages({"question": "Who?", "answer": "Ida Moll"}, {}).hops == ()
    row = {"question": "How often did Ida Moll dance there?", "answer": "Ida Moll sang", "type": "false_premise"}
    assert gold_on_pages(row, WEIR).contradicted()


def test_gold_of_missing_passage_names_it() -> None:
    with pytest.raises(UsageError, match="oake"):
        gold_of(ROW, {"light": PASSAGES["light"]})


# Parameters


def test_rate_uses_the_most_specific_entry() -> None:
    simulation = Simulation.parse("missed=0.1, drafter=0.2, drafter.invented=0.3, reviewer=0.4", seed=5)
    assert simulation.seed == 5
    assert simulation.rate("drafter", "invented") == 0.3
    assert simulation.rate("drafter", "missed") == 0.2
    assert simulation.rate("reader", "missed") == 0.1
    assert simulation.rate("reviewer", "flattering") == 0.4
    assert simulation.rate("planner", "invented") == 0.0
    assert Simulation.parse("").rates == {"closed-book": 0.02}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("draftr=0.1", "Did you mean drafter"),
        ("drafter.inventd=0.1", "drafter.invented"),
        ("drafter.flattering=0.1", "no simulated role or error"),
        ("drafter", "rates.drafter: Input should be a valid number"),
        ("drafter=1.5", "drafter=1.5"),
    ],
)
def test_parse_invalid_rate_is_explained(given: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Simulation.parse(given)


def test_parse_reads_and_checks_a_file(tmp_path: Path) -> None:
    file = tmp_path / "simulation.toml"
    file.write_text("prefill = 100\n[rates]\nmissed = 0.1\nreviewer.flattering = 0.2\n")
    simulation = Simulation.parse(str(file), seed=2)
    assert (simulation.seed, simulation.prefill) == (2, 100.0)
    assert simulation.rates == {"missed": 0.1, "reviewer.flattering": 0.2}
    for text, message in (("sed = 2", "sed"), ("seed = ", "cannot be read"), ("[rates]\nx = 1", "There is no")):
        file.write_text(text)
        with pytest.raises(UsageError, match=message):
            Simulation.parse(str(file))
