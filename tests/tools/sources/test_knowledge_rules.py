"""The rules that lead from a question's entities to calls."""

import json
from pathlib import Path

import pytest

from sleuth.tools.sources.knowledge_graph.functions import known_functions
from sleuth.tools.sources.knowledge_graph.local import LocalGraph
from sleuth.tools.sources.knowledge_graph.rules import KINDS, NamedEntity, deduplicate, explore

DATA = json.loads((Path(__file__).parents[3] / "examples" / "knowledge_graph.json").read_text(encoding="utf-8"))
GRAPH = LocalGraph(DATA)

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
    assert {known_functions()[each.call.partition("(")[0]].domain for each in found} == {"open"}


def test_each_entity_counts_once_and_an_unknown_kind_is_other() -> None:
    given = [
        NamedEntity(name="a", kind="planet"),
        NamedEntity(name="a", kind="other"),
        NamedEntity(name=" ", kind="song"),
    ]
    assert deduplicate(given) == [NamedEntity(name="a", kind="other")]
    assert "other" in KINDS
