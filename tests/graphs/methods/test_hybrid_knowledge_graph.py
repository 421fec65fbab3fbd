"""Calls are checked before they are made, bounded while they are, answered from a file, and selected by rules."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.knowledge_graph.server import LocalGraph
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.backends import similar
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.functions import (
    MAX_CALLS,
    MAX_CHARACTERS,
    Function,
    GraphUnavailable,
    Lookup,
    declared_functions,
    format_call,
    look_up,
)
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.rules import NamedEntity, deduplicate, explore

DATA = json.loads(
    (Path(__file__).parents[3] / "examples" / "knowledge_graph" / "data.json").read_text(encoding="utf-8")
)
GRAPH = LocalGraph(DATA)
BAND = "The Brine Street Five"

ANSWERS: dict[str, tuple[dict[str, Any], Any]] = {
    "open_search_entity_by_name": ({"name": "cald"}, ["Cald Hern"]),
    "open_get_entity": ({"entity": "cald hern"}, DATA["open"]["Cald Hern"]),
    "movie_get_person_info": ({"person_name": "Mara Quil"}, [DATA["movie"]["people"][0]]),
    "movie_get_movie_info": ({"movie_name": "ferry"}, [DATA["movie"]["movies"][1]]),
    "movie_get_year_info": ({"year": "2004"}, {"movie_list": [2, 3], "oscar_awards": []}),
    "movie_get_movie_info_by_id": ({"id": 3}, DATA["movie"]["movies"][2]),
    "movie_get_person_info_by_id": ({"id": 13}, DATA["movie"]["people"][2]),
    "finance_get_company_name": ({"name": "copper"}, ["Dunvarrow Copper Company"]),
    "finance_get_ticker_by_name": ({"name": "tolvane salt company"}, "TOLS"),
    "finance_get_price_history": ({"ticker_name": "tols"}, DATA["finance"][1]["price_history"]),
    "finance_get_detailed_price_history": ({"ticker_name": "TOLS"}, DATA["finance"][1]["detailed_price_history"]),
    "finance_get_dividends_history": ({"ticker_name": "TOLS"}, {"2023-09-01 00:00:00 EST": 0.12}),
    "finance_get_market_capitalization": ({"ticker_name": "DUNC"}, 612000000),
    "finance_get_eps": ({"ticker_name": "UPKT"}, -0.21),
    "finance_get_pe_ratio": ({"ticker_name": "UPKT"}, None),
    "finance_get_info": ({"ticker_name": "DUNC"}, DATA["finance"][0]["info"]),
    "music_search_artist_entity_by_name": ({"artist_name": "brine"}, ["The Brine Street Five"]),
    "music_search_song_entity_by_name": ({"song_name": "nine bell"}, ["Nine Bells"]),
    "music_get_billboard_rank_date": (
        {"rank": 1}, {"rank_list": ["Harbour Light"] * 2, "artist_list": ["Isolde Farrow"] * 2}
    ),
    "music_get_billboard_attributes": (
        {"date": "2002-05-11", "attribute": "weeks_in_chart", "song_name": "harbour light"}, "6"
    ),
    "music_grammy_get_best_artist_by_year": ({"year": 1999}, ["The Brine Street Five"]),
    "music_grammy_get_award_count_by_artist": ({"artist_name": "isolde farrow"}, 2),
    "music_grammy_get_award_count_by_song": ({"song_name": "Low Water"}, 1),
    "music_grammy_get_best_song_by_year": ({"year": 2010}, ["Nine Bells"]),
    "music_grammy_get_award_date_by_artist": ({"artist_name": "Isolde Farrow"}, [2003, 2010]),
    "music_grammy_get_best_album_by_year": ({"year": 2003}, ["The Long Quay"]),
    "music_grammy_get_all_awarded_artists": ({}, ["The Brine Street Five", "Isolde Farrow", "Orla Venn"]),
    "music_get_artist_birth_place": ({"artist_name": "Isolde Farrow"}, "GB"),
    "music_get_artist_birth_date": ({"artist_name": "Isolde Farrow"}, "1979-08-09"),
    "music_get_members": (
        {"band_name": BAND}, ["Col Harker", "Dunstan Wray", "Effie Lorne", "Gil Amory", "Hetty Pask"]
    ),
    "music_get_lifespan": ({"artist_name": "The Brine Street Five"}, ["1994", "2011"]),
    "music_get_song_author": ({"song_name": "Nine Bells"}, "Effie Lorne"),
    "music_get_song_release_country": ({"song_name": "Low Water"}, "US"),
    "music_get_song_release_date": ({"song_name": "Harbour Light"}, "2002-03-18"),
    "music_get_artist_all_works": ({"artist_name": "The Brine Street Five"}, ["Kelp and Iron", "Low Water"]),
    "sports_soccer_get_games_on_date": ({"date": "2024-03", "team_name": "sennick"}, [DATA["sports"]["soccer"][3]]),
    "sports_nba_get_games_on_date": ({"date": "2024-01-13"}, [DATA["sports"]["nba"][0]]),
    "sports_nba_get_play_by_play_data_by_game_ids": ({"game_ids": ["g2"]}, DATA["sports"]["plays"]["g2"]),
}  # fmt: skip


def test_every_function_has_a_case() -> None:
    assert ANSWERS.keys() == declared_functions().keys() == {function.name for function in GRAPH.functions}


@pytest.mark.parametrize("name", ANSWERS)
async def test_the_file_answers_what_it_knows(name: str) -> None:
    arguments, expected = ANSWERS[name]
    assert await GRAPH.answer(declared_functions()[name], arguments) == expected
    unknown = {"id": 99, "year": 1850, "rank": 77, "date": "1850-01-01", "attribute": "rank", "game_ids": ["none"]}
    other = {key: unknown.get(key, "Zzyzx Qqq") for key in arguments}
    other |= {"year": "1850"} if name == "movie_get_year_info" else {}
    if other:
        (found,) = await look_up(GRAPH, [(name, other)])
        assert found == Lookup(call=format_call(name, other), problem="nothing is known")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("open_get_entity", {}, "entity: field required"),
        ("open_get_entity", {"entity": " "}, "entity: string should have at least 1 character"),
        ("open_get_entity", {"entity": "x" * 201}, "at most 200"),
        ("open_get_entity", {"entity": "x", "limit": 5}, "limit: extra inputs are not permitted"),
        ("movie_get_movie_info_by_id", {"id": -1}, "id: input should be greater than or equal to 0"),
        ("music_get_billboard_rank_date", {"rank": 1, "date": "yesterday"}, "date: string should match"),
        ("music_get_billboard_attributes", {"date": "2002-05-04", "attribute": "x", "song_name": "y"}, "attribute: "),
        ("sports_nba_get_play_by_play_data_by_game_ids", {"game_ids": ["g"] * 11}, "game_ids: "),
        ("open_get_entities", {}, "Did you mean open_get_entity"),
    ],
)
async def test_a_call_that_does_not_fit_is_not_made(name: str, arguments: dict[str, Any], message: str) -> None:
    (found,) = await look_up(GRAPH, [(name, arguments)])
    assert message in found.problem and not found.text


class Slow:
    """Answers after a while, or fails, by name."""

    functions = (declared_functions()["open_get_entity"],)

    def __init__(self) -> None:
        self.answered: list[str] = []

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:
        entity = str(arguments.get("entity"))
        if entity == "never":
            await asyncio.Event().wait()
        if entity == "broken":
            raise GraphUnavailable("the server is on fire")
        self.answered.append(entity)
        return {"about": entity * 2000 if entity == "long" else entity}


async def test_one_that_hangs_or_fails_holds_none_of_the_others_up() -> None:
    calls = [("open_get_entity", {"entity": each}) for each in ("never", "broken", "fine", "long")]
    never, broken, fine, long = await look_up(Slow(), calls, seconds=0.01)
    assert never.problem == "no answer within 0.01 s"
    assert broken.problem == "the server is on fire"
    assert fine == Lookup(call='open_get_entity(entity="fine")', text='{"about": "fine"}')
    assert len(long.text) == MAX_CHARACTERS
    assert long.text.endswith("…")


async def test_calls_are_made_once_and_not_too_many() -> None:
    graph = Slow()
    names = [f"e{at}" for at in range(MAX_CALLS + 2)]
    calls = [("open_get_entity", {"entity": each}) for each in [names[0], *names]]
    found = await look_up(graph, calls)
    assert graph.answered == names[:MAX_CALLS]
    assert [each.problem for each in found] == [""] * MAX_CALLS + ["only 5 calls are made"] * 2


@given(
    st.lists(
        st.tuples(st.sampled_from([*declared_functions(), "x"]), st.dictionaries(st.text(), st.integers() | st.text()))
    )
)
def test_whatever_a_model_wants_to_call_ends_in_a_lookup(calls: list[tuple[str, dict[str, Any]]]) -> None:
    found = asyncio.run(look_up(GRAPH, calls))
    assert all(bool(each.text) != bool(each.problem) for each in found)


def test_signatures_name_every_argument() -> None:
    assert declared_functions()["music_get_billboard_rank_date"].signature() == (
        "music_get_billboard_rank_date(rank, date?): songs and artists that had a place in the chart"
    )


def test_names_are_found_by_parts_and_in_other_spellings() -> None:
    found = {"kestrow": ["Kestrow"], "lethany": ["Port Lethany"], "Great Ulavar": ["Great Ullavar"], "Paris": []}
    assert {name: similar(name, DATA["open"]) for name in found} == found


# The rules that lead from the entities of a question to calls

CASES = [
    ("What is the market cap of the Tolvane Salt Company?", "Tolvane Salt Company", "company", "market_capitalization"),
    ("What are the earnings per share of UPKT?", "UPKT", "ticker", "finance_get_eps"),
    ("Who are the members of The Brine Street Five?", "The Brine Street Five", "band", "music_get_members"),
    ("How many Grammys has Isolde Farrow won?", "Isolde Farrow", "musician", "award_count_by_artist"),
    ("Who wrote Low Water?", "Low Water", "song", "music_get_song_author"),
    ("Who played in The Salt Road?", "The Salt Road", "film", "movie_get_movie_info"),
    ("When was Mara Quill born?", "Mara Quill", "person", "movie_get_person_info"),
    ("Which film got an Oscar in 1999?", "1999", "year", "movie_get_year_info"),
    ("How high is Cald Hern?", "cald hern", "other", "open_get_entity"),
]


@pytest.mark.parametrize(("question", "name", "kind", "function"), CASES, ids=[case[3] for case in CASES])
async def test_a_rule_asks_what_the_question_asks(question: str, name: str, kind: str, function: str) -> None:
    found = await explore(GRAPH, [NamedEntity(name=name, kind=kind)], question)
    answered = [each.call for each in found if each.text]
    assert any(function in call for call in answered), found


async def test_games_are_asked_on_the_day_of_the_question_or_today() -> None:
    game = DATA["sports"]["soccer"][0]
    team, day = NamedEntity(name=game["team_name"], kind="team"), game["date"][:10]
    for named, today in (([team, NamedEntity(name=day, kind="day")], "2024-01-01"), ([team], day)):
        found = await explore(GRAPH, named, "How did the football game end?", today=today)
        games = {each.call.partition("(")[0]: each.text for each in found if each.call.startswith("sports")}
        assert list(games) == ["sports_soccer_get_games_on_date"]
        assert game["opponent"] in games["sports_soccer_get_games_on_date"]


async def test_other_domains_are_left_out_where_the_domain_is_known() -> None:
    named = [NamedEntity(name="Low Water", kind="song"), NamedEntity(name="Cald Hern", kind="other")]
    found = await explore(GRAPH, named, "Who wrote it?", domain="finance")
    assert {each.call.partition("_")[0] for each in found} == {"open"}


async def test_functions_that_a_graph_lacks_are_not_called() -> None:
    found = await explore(LocalGraph({"open": {}}), [NamedEntity(name="Low Water", kind="song")], "Who wrote it?")
    assert {declared_functions()[each.call.partition("(")[0]].domain for each in found} == {"open"}


def test_each_entity_counts_once_and_an_unknown_kind_is_other() -> None:
    given = [NamedEntity(name=name, kind=kind) for name, kind in (("a", "planet"), ("a", "other"), (" ", "song"))]
    assert deduplicate(given) == [NamedEntity(name="a", kind="other")]
