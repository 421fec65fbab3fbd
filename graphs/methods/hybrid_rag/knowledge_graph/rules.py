"""Calls selected by our own rules from the entities of a question: the first of the two routes (section 4.5).

A rule uses the question's words to select functions for an entity. Companies need their ticker symbols and open
entities their exact names, so these are looked up first, and used in a second round.
"""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sleuth.agents.roles.hybrid import KINDS
from sleuth.graphs.core.context import KnowledgeGraph
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.functions import MAX_SECONDS, Lookup, declared_functions, look_up

Call = tuple[str, dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedEntity:
    """An entity as a question names it; `kind` is one of KINDS."""

    name: str
    kind: str


_MUSICIAN = {
    "music_get_artist_birth_place": "where|country|born in|birth ?place",
    "music_get_artist_birth_date": "born|birth|old|age|when|form",
    "music_get_lifespan": "die|death|dead|alive|live",
    "music_grammy_get_award_count_by_artist": "grammy|award",
    "music_grammy_get_award_date_by_artist": "grammy|award",
    "music_get_artist_all_works": "",
}
_RULES: dict[str, dict[str, str]] = {
    "ticker": {
        "finance_get_market_capitalization": "market cap|capitali|worth|larg",
        "finance_get_eps": "eps|earnings",
        "finance_get_pe_ratio": "p/e|pe ratio|price.to.earnings",
        "finance_get_dividends_history": "dividend",
        "finance_get_price_history": "price|open|clos|stock|volume|trad",
        "finance_get_info": "",
    },
    "film": {"movie_get_movie_info": ""},
    "person": {"movie_get_person_info": ""},
    "musician": _MUSICIAN,
    "band": {"music_get_members": "member|band|group|who (?:plays|sings)", **_MUSICIAN},
    "song": {
        "music_get_song_release_date": "when|year|release|came out|old",
        "music_get_song_release_country": "countr|where",
        "music_grammy_get_award_count_by_song": "grammy|award",
        "music_get_song_author": "",
    },
    "year": {
        "movie_get_year_info": "oscar|film|movie|academy",
        "music_grammy_get_best_song_by_year": "song",
        "music_grammy_get_best_album_by_year": "album",
        "music_grammy_get_best_artist_by_year": "grammy|new artist",
    },
}
"""By kind: functions for questions with one of the words; those without words are a fallback."""
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

    async def run(calls: Iterable[Call]) -> list[Lookup]:
        return await look_up(graph, [call for call in calls if call[0] in offered], seconds=seconds)

    first = await run(_first(named, question, today))
    asked = {each.call for each in first}
    entities = _entities_in(first)
    calls = [call for entity in entities for call in _by_rule(entity, question)]
    calls += [("open_get_entity", {"entity": entity.name}) for entity in entities if entity.kind == "other"]
    second = await run(calls)
    return [*first, *(each for each in second if each.call not in asked)]


def _first(named: Sequence[NamedEntity], question: str, today: str) -> list[Call]:
    calls: list[Call] = []
    for entity in named:
        if entity.kind == "company":
            calls.append(("finance_get_ticker_by_name", {"name": entity.name}))
        elif entity.kind == "team":
            calls += _games(entity, named, question, today)
        calls += _by_rule(entity, question)
    searched = (entity for entity in named if entity.kind not in ("ticker", "year", "day"))
    return [*calls, *(("open_search_entity_by_name", {"name": entity.name}) for entity in searched)]


def _by_rule(entity: NamedEntity, question: str) -> list[Call]:
    rules = _RULES.get(entity.kind, {}).items()
    fitting = [name for name, words in rules if words and re.search(rf"\b(?:{words})", question, re.IGNORECASE)]
    chosen = fitting[:_MOST_PER_ENTITY] or [name for name, words in rules if not words]
    return [(name, {next(iter(declared_functions()[name].parameters)): entity.name}) for name in chosen]


def _games(team: NamedEntity, named: Sequence[NamedEntity], question: str, today: str) -> list[Call]:
    """Return the games of a team on the day or in the year that the question names, or today."""
    when = next((each.name for kind in ("day", "year") for each in named if each.kind == kind), today)
    played = [name for name, words in _GAMES if re.search(words, question, re.IGNORECASE)]
    return [(name, {"date": when, "team_name": team.name}) for name in played or [name for name, _ in _GAMES] if when]


def _entities_in(lookups: Sequence[Lookup]) -> list[NamedEntity]:
    """Return the ticker symbols of companies, and the first open entity for each name."""
    entities: list[NamedEntity] = []
    for lookup in lookups:
        try:
            value = json.loads(lookup.text)
        except ValueError:  # a long result was cut
            continue
        if lookup.call.startswith("finance_get_ticker_by_name(") and isinstance(value, str):
            entities.append(NamedEntity(name=value, kind="ticker"))
        elif lookup.call.startswith("open_search_entity_by_name(") and isinstance(value, list) and value:
            entities.append(NamedEntity(name=str(value[0]), kind="other"))
    return list(dict.fromkeys(entities))


def deduplicate(named: Iterable[NamedEntity]) -> list[NamedEntity]:
    """Return each entity once; unknown kinds become "other"."""
    entities = [replace(each, kind=each.kind if each.kind in KINDS else "other") for each in named if each.name.strip()]
    return list(dict.fromkeys(entities))
