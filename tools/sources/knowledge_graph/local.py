"""A knowledge graph in one JSON file, for use without a server: the same functions over tables in memory.

The file has a part for each domain: `open` (entities by name), `movie` (`movies`, `people`), `finance` (companies),
`music` (`artists`, `songs`, `chart`, `grammy`) and `sports` (`soccer`, `nba`, `plays`); see
`examples/knowledge_graph.json`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

from sleuth.tools.errors import StoreError
from sleuth.tools.sources.knowledge_graph.functions import Function, TableLookup, known_functions
from sleuth.tools.text import comparison_key

Row = dict[str, Any]

MAX_FOUND = 10
"""Names or rows that a search gives."""


class LocalGraph:
    """The tables of one file; functions of domains that are not in the file are not offered."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.functions = tuple(each for each in known_functions().values() if each.domain in data)
        self._data = data

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read the file; raises StoreError where it cannot be read. Blocks."""
        try:
            data = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StoreError(f"The knowledge graph {file} cannot be read: {error}.") from error
        domains = {function.domain for function in known_functions().values()}
        if not isinstance(data, dict) or not data or not data.keys() <= domains:
            raise StoreError(
                f"The knowledge graph {file} needs parts named as its domains: {', '.join(sorted(domains))}."
            )
        return cls(data)

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the tables' answer; None if they have none."""
        data, given = self._data[function.domain], [arguments.get(name) for name in function.parameters]
        if function.lookup:
            return _look_up(data, function.lookup, str(given[0]))
        return _ANSWERS[function.name](data, *given)


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


def _equal(rows: Iterable[tuple[str, Row]], name: str) -> Row | None:
    """Return the row of exactly this name; None if there is none."""
    return next((row for key, row in rows if comparison_key(key) == comparison_key(name)), None)


def _look_up(data: Any, lookup: TableLookup, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the answer of a table of a domain, or of the domain's only one."""
    table = data[lookup.table] if lookup.table else data
    rows = table.items() if isinstance(table, Mapping) else ((str(row[lookup.key]), row) for row in table)
    if lookup.find == "equal":
        row = _equal(rows, name)
        return row if row is None or not lookup.column else row.get(lookup.column)
    by_name = dict(rows)
    names = similar(name, by_name)
    return names if lookup.find == "names" else [by_name[each] for each in names]


# Answers of functions that are not one look-up, by function


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
    row = _equal(((str(row["song"]), row) for row in data["chart"] if row["date"] == date), song_name)
    return row.get(attribute) if row else None


def _games(table: str, *teams: str) -> Callable[..., list[Row]]:
    def games(data: Mapping[str, Any], date: str, team_name: str | None) -> list[Row]:
        on_date = [game for game in data[table] if game["date"].startswith(date)]
        if team_name is None:
            return on_date
        wanted = comparison_key(team_name)
        return [game for game in on_date if any(wanted in comparison_key(game[at]) for at in teams)]

    return games


_ANSWERS: dict[str, Callable[..., Any]] = {
    "movie_get_year_info": _year,
    "music_get_billboard_rank_date": _ranked,
    "music_get_billboard_attributes": _charted,
    "music_grammy_get_all_awarded_artists": lambda data: [
        name for year in data["grammy"].values() for name in year["artist"]
    ],
    "sports_soccer_get_games_on_date": _games("soccer", "team_name"),
    "sports_nba_get_games_on_date": _games("nba", "team_name_home", "team_name_away"),
    "sports_nba_get_play_by_play_data_by_game_ids": lambda data, game_ids: [
        play for id in game_ids for play in data["plays"].get(id, [])
    ],
}
