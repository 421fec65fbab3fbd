"""A knowledge graph in one JSON file, for use without a server: the same functions over tables in memory.

The file has a part for each domain: `open` (entities by name), `movie` (`movies`, `people`), `finance` (companies),
`music` (`artists`, `songs`, `chart`, `grammy`) and `sports` (`soccer`, `nba`, `plays`); see
`examples/knowledge_graph.json`.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from sleuth.tools.errors import StoreError
from sleuth.tools.sources.knowledge_graph.functions import FUNCTIONS, Function
from sleuth.tools.text import comparison_key

Row = dict[str, Any]

MAX_FOUND = 10
"""Names or rows that a search gives."""


class LocalGraph:
    """The tables of one file; functions of domains that are not in the file are not offered."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.functions = tuple(each for each in FUNCTIONS.values() if each.domain in data)
        self._data = data

    @classmethod
    async def read(cls, file: Path) -> Self:
        """Read the file; raises StoreError where it cannot be read."""
        try:
            data = json.loads(await asyncio.to_thread(file.read_text, encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"The knowledge graph {file} cannot be read: {error}.") from error
        domains = {function.domain for function in FUNCTIONS.values()}
        if not isinstance(data, dict) or not data or not data.keys() <= domains:
            raise StoreError(
                f"The knowledge graph {file} needs parts named as its domains: {', '.join(sorted(domains))}."
            )
        return cls(data)

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the tables' answer; None if they have none."""
        given = (arguments.get(name) for name in function.parameters)
        return _ANSWERS[function.name](self._data[function.domain], *given)


# Finding by name


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return equal names, then names that contain it, then similar spellings; at most ten."""
    wanted, by_words = comparison_key(name), {comparison_key(each): each for each in known}
    same = [each for each in by_words if each == wanted]
    containing = sorted(
        (each for each in by_words if wanted in each and each != wanted), key=lambda each: (len(each), each)
    )
    alike = [each for each in get_close_matches(wanted, by_words, n=MAX_FOUND, cutoff=0.75) if wanted not in each]
    return [by_words[each] for each in [*same, *containing, *alike]][:MAX_FOUND]


def _same(rows: Iterable[Row], name: str, key: str) -> Row:
    """Return the row of exactly this name; an empty one where there is none."""
    return next((row for row in rows if comparison_key(str(row[key])) == comparison_key(name)), {})


# Answers, by function


def _field(field: str, table: str = "", key: str = "name") -> Callable[..., Any]:
    """Return one field of the row of this name, in a table of the domain or in the domain's only one."""
    return lambda data, name: _same(data[table] if table else data, name, key).get(field)


def _rows(table: str, key: str = "name") -> Callable[..., list[Row]]:
    """Return the rows with similar names."""

    def rows(data: Mapping[str, Any], name: str) -> list[Row]:
        by_name = {row[key]: row for row in data[table]}
        return [by_name[each] for each in similar(name, by_name)]

    return rows


def _names(table: str) -> Callable[..., list[str]]:
    return lambda data, name: similar(name, [row["name"] for row in data[table]])


def _by_id(table: str) -> Callable[..., Row | None]:
    return lambda data, id: next((row for row in data[table] if row["id"] == id), None)


def _award(field: str) -> Callable[..., Any]:
    return lambda data, year: data["grammy"].get(str(year), {}).get(field)


def _entity(data: Mapping[str, Row], entity: str) -> Row | None:
    return next((facts for name, facts in data.items() if comparison_key(name) == comparison_key(entity)), None)


def _year(data: Mapping[str, Any], year: str) -> Row | None:
    films = [film["id"] for film in data["movies"] if str(film.get("release_date", "")).startswith(year)]
    awards = (award for film in data["movies"] for award in film.get("oscar_awards", []))
    oscars = [award for award in awards if str(award["year_ceremony"]) == year]
    return {"movie_list": films, "oscar_awards": oscars} if films or oscars else None


def _ranked(data: Mapping[str, Any], rank: int, date: str | None) -> Row | None:
    rows = [row for row in data["chart"] if row["rank"] == rank and date in (None, row["date"])]
    found = {"rank_list": [row["song"] for row in rows], "artist_list": [row["artist"] for row in rows]}
    return found if rows else None


def _charted(data: Mapping[str, Any], date: str, attribute: str, song_name: str) -> Any:  # noqa: ANN401 - any JSON
    return _same((row for row in data["chart"] if row["date"] == date), song_name, "song").get(attribute)


def _games(table: str, *teams: str) -> Callable[..., list[Row]]:
    def games(data: Mapping[str, Any], date: str, team_name: str | None) -> list[Row]:
        on_date = [game for game in data[table] if game["date"].startswith(date)]
        if team_name is None:
            return on_date
        wanted = comparison_key(team_name)
        return [game for game in on_date if any(wanted in comparison_key(game[at]) for at in teams)]

    return games


_ANSWERS: dict[str, Callable[..., Any]] = {
    "open_search_entity_by_name": lambda data, name: similar(name, data),
    "open_get_entity": _entity,
    "movie_get_person_info": _rows("people"),
    "movie_get_movie_info": _rows("movies", key="title"),
    "movie_get_year_info": _year,
    "movie_get_movie_info_by_id": _by_id("movies"),
    "movie_get_person_info_by_id": _by_id("people"),
    "finance_get_company_name": lambda data, name: similar(name, [row["name"] for row in data]),
    "finance_get_ticker_by_name": _field("ticker"),
    "finance_get_price_history": _field("price_history", key="ticker"),
    "finance_get_detailed_price_history": _field("detailed_price_history", key="ticker"),
    "finance_get_dividends_history": _field("dividends_history", key="ticker"),
    "finance_get_market_capitalization": _field("market_capitalization", key="ticker"),
    "finance_get_eps": _field("eps", key="ticker"),
    "finance_get_pe_ratio": _field("pe_ratio", key="ticker"),
    "finance_get_info": _field("info", key="ticker"),
    "music_search_artist_entity_by_name": _names("artists"),
    "music_search_song_entity_by_name": _names("songs"),
    "music_get_billboard_rank_date": _ranked,
    "music_get_billboard_attributes": _charted,
    "music_grammy_get_best_artist_by_year": _award("artist"),
    "music_grammy_get_award_count_by_artist": _field("grammy_count", "artists"),
    "music_grammy_get_award_count_by_song": _field("grammy_count", "songs"),
    "music_grammy_get_best_song_by_year": _award("song"),
    "music_grammy_get_award_date_by_artist": _field("grammy_years", "artists"),
    "music_grammy_get_best_album_by_year": _award("album"),
    "music_grammy_get_all_awarded_artists": lambda data: [
        name for year in data["grammy"].values() for name in year["artist"]
    ],
    "music_get_artist_birth_place": _field("birth_place", "artists"),
    "music_get_artist_birth_date": _field("birth_date", "artists"),
    "music_get_members": _field("members", "artists"),
    "music_get_lifespan": _field("lifespan", "artists"),
    "music_get_song_author": _field("author", "songs"),
    "music_get_song_release_country": _field("release_country", "songs"),
    "music_get_song_release_date": _field("release_date", "songs"),
    "music_get_artist_all_works": _field("works", "artists"),
    "sports_soccer_get_games_on_date": _games("soccer", "team_name"),
    "sports_nba_get_games_on_date": _games("nba", "team_name_home", "team_name_away"),
    "sports_nba_get_play_by_play_data_by_game_ids": lambda data, game_ids: [
        play for id in game_ids for play in data["plays"].get(id, [])
    ],
}
