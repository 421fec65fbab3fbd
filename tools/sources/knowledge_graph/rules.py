"""Calls selected by our own rules from the entities of a question: the first of the two routes (section 4.5).

A rule uses the question's words to select functions for an entity. Companies need their ticker symbols and open
entities their exact names, so these are looked up first, and used in a second round.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sleuth.tools.sources.knowledge_graph.lookups import MAX_SECONDS, KnowledgeGraph, Lookup, look_up

KINDS = ("company", "ticker", "film", "person", "musician", "band", "song", "team", "year", "day", "other")
"""What an entity can be."""

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedEntity:
    """An entity as a question names it; `kind` is one of KINDS."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rule:
    """A function for questions with one of these words; without words, a fallback for the kind."""

    function: str
    argument: str
    words: str = ""


_TICKER = (
    _Rule(function="finance_get_market_capitalization", argument="ticker_name", words="market cap|capitali|worth|larg"),
    _Rule(function="finance_get_eps", argument="ticker_name", words="eps|earnings"),
    _Rule(function="finance_get_pe_ratio", argument="ticker_name", words="p/e|pe ratio|price.to.earnings"),
    _Rule(function="finance_get_dividends_history", argument="ticker_name", words="dividend"),
    _Rule(function="finance_get_price_history", argument="ticker_name", words="price|open|clos|stock|volume|trad"),
    _Rule(function="finance_get_info", argument="ticker_name"),
)
_ARTIST = (
    _Rule(function="music_get_members", argument="band_name", words="member|band|group|who (?:plays|sings)"),
    _Rule(function="music_get_artist_birth_place", argument="artist_name", words="where|country|born in|birth ?place"),
    _Rule(function="music_get_artist_birth_date", argument="artist_name", words="born|birth|old|age|when|form"),
    _Rule(function="music_get_lifespan", argument="artist_name", words="die|death|dead|alive|live"),
    _Rule(function="music_grammy_get_award_count_by_artist", argument="artist_name", words="grammy|award"),
    _Rule(function="music_grammy_get_award_date_by_artist", argument="artist_name", words="grammy|award"),
    _Rule(function="music_get_artist_all_works", argument="artist_name"),
)
_SONG = (
    _Rule(function="music_get_song_release_date", argument="song_name", words="when|year|release|came out|old"),
    _Rule(function="music_get_song_release_country", argument="song_name", words="countr|where"),
    _Rule(function="music_grammy_get_award_count_by_song", argument="song_name", words="grammy|award"),
    _Rule(function="music_get_song_author", argument="song_name"),
)
_YEAR = (
    _Rule(function="movie_get_year_info", argument="year", words="oscar|film|movie|academy"),
    _Rule(function="music_grammy_get_best_song_by_year", argument="year", words="song"),
    _Rule(function="music_grammy_get_best_album_by_year", argument="year", words="album"),
    _Rule(function="music_grammy_get_best_artist_by_year", argument="year", words="grammy|new artist"),
)
_RULES: dict[str, tuple[_Rule, ...]] = {
    "ticker": _TICKER,
    "film": (_Rule(function="movie_get_movie_info", argument="movie_name"),),
    "person": (_Rule(function="movie_get_person_info", argument="person_name"),),
    "musician": _ARTIST[1:],
    "band": _ARTIST,
    "song": _SONG,
    "year": _YEAR,
}
_GAMES = (("sports_soccer_get_games_on_date", "soccer|football"), ("sports_nba_get_games_on_date", "nba|basketball"))
_MOST_PER_ENTITY = 2


async def explore(
    graph: KnowledgeGraph,
    named: Sequence[NamedEntity],
    question: str,
    *,
    domain: str | None = None,
    today: str = "",
    seconds: float = MAX_SECONDS,
) -> list[Lookup]:
    """Return a graph's results on a question's entities, in at most two rounds of calls.

    Args:
        graph: functions that it lacks are not called.
        named: the question's entities.
        question: its words select the functions.
        domain: if known, functions of other domains except "open" are excluded.
        today: the day as in 2024-02-29, for games if the question names no day.
        seconds: the time limit of a call.
    """
    offered = {each.name for each in graph.functions if domain is None or each.domain in (domain, "open")}
    first = await look_up(graph, _offered(_first(named, question, today), offered), seconds=seconds)
    asked = {each.call for each in first}
    second = await look_up(graph, _offered(_second(_found(first), question), offered), seconds=seconds)
    return [*first, *(each for each in second if each.call not in asked)]


def _offered(calls: Iterable[Call], offered: set[str]) -> list[Call]:
    return [call for call in calls if call[0] in offered]


def _first(named: Sequence[NamedEntity], question: str, today: str) -> list[Call]:
    calls: list[Call] = []
    for entity in named:
        if entity.kind == "company":
            calls.append(("finance_get_ticker_by_name", {"name": entity.name}))
        elif entity.kind == "team":
            calls += _games(entity, named, question, today)
        calls += _by_rule(entity, question)
    by_name: list[Call] = [
        ("open_search_entity_by_name", {"name": entity.name})
        for entity in named
        if entity.kind not in ("ticker", "year", "day")
    ]
    return [*calls, *by_name]


def _second(found: Sequence[NamedEntity], question: str) -> list[Call]:
    calls = [call for entity in found for call in _by_rule(entity, question)]
    return [*calls, *(("open_get_entity", {"entity": entity.name}) for entity in found if entity.kind == "other")]


def _by_rule(entity: NamedEntity, question: str) -> list[Call]:
    rules = _RULES.get(entity.kind, ())
    fitting = [rule for rule in rules if rule.words and re.search(rf"\b(?:{rule.words})", question, re.IGNORECASE)]
    chosen = fitting[:_MOST_PER_ENTITY] or [rule for rule in rules if not rule.words]
    return [(rule.function, {rule.argument: entity.name}) for rule in chosen]


def _games(team: NamedEntity, named: Sequence[NamedEntity], question: str, today: str) -> list[Call]:
    """Return the games of a team on the day or in the year that the question names, or today."""
    when = next((each.name for kind in ("day", "year") for each in named if each.kind == kind), today)
    played = [name for name, words in _GAMES if re.search(words, question, re.IGNORECASE)]
    return [(name, {"date": when, "team_name": team.name}) for name in played or [name for name, _ in _GAMES] if when]


def _found(lookups: Sequence[Lookup]) -> list[NamedEntity]:
    """Return the ticker symbols of companies, and the first open entity for each name."""
    found: list[NamedEntity] = []
    for lookup in lookups:
        value = _value(lookup)
        if lookup.call.startswith("finance_get_ticker_by_name(") and isinstance(value, str):
            found.append(NamedEntity(name=value, kind="ticker"))
        elif lookup.call.startswith("open_search_entity_by_name(") and isinstance(value, list) and value:
            found.append(NamedEntity(name=str(value[0]), kind="other"))
    return [each for at, each in enumerate(found) if each not in found[:at]]


def _value(lookup: Lookup) -> object:
    """Return a result, where it is whole: a long one was cut."""
    try:
        return json.loads(lookup.text)
    except ValueError:
        return None


def deduplicate(named: Iterable[NamedEntity]) -> list[NamedEntity]:
    """Return each entity once; unknown kinds become "other"."""
    known = [replace(each, kind=each.kind if each.kind in KINDS else "other") for each in named if each.name.strip()]
    return list(dict.fromkeys(known))
