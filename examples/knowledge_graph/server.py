"""Serves a JSON file as a knowledge graph with the interface of the CRAG benchmark's mock server.

    python examples/knowledge_graph/server.py examples/knowledge_graph/data.json
    SLEUTH_KNOWLEDGE_GRAPH=http://127.0.0.1:8800 sleuth ask "How high is Cald Hern?" --method hybrid-rag

The file has a part for each domain: `open` (entities by name), `movie` (`movies`, `people`), `finance` (companies),
`music` (`artists`, `songs`, `chart`, `grammy`) and `sports` (`soccer`, `nba`, `plays`). Needs the extra `serve`.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sleuth.graphs.methods.hybrid_rag.knowledge_graph.backends import similar
from sleuth.graphs.methods.hybrid_rag.knowledge_graph.functions import Function, declared_functions
from sleuth.tools.text.normalization import comparison_key

PORT = 8800

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table that answers by the row of a name (or those of similar ones), or by a column of it, or by names.

    Without `table`, the domain is one table. `key` is the column of names; a table may also be an object by name.
    """

    table: str = ""
    key: str = "name"
    column: str = ""
    find: Literal["equal", "names", "rows"] = "equal"


_TABLES = {
    "open_search_entity_by_name": Table(find="names"),
    "open_get_entity": Table(),
    "movie_get_person_info": Table(table="people", find="rows"),
    "movie_get_movie_info": Table(table="movies", key="title", find="rows"),
    "movie_get_movie_info_by_id": Table(table="movies", key="id"),
    "movie_get_person_info_by_id": Table(table="people", key="id"),
    "finance_get_company_name": Table(find="names"),
    "finance_get_ticker_by_name": Table(column="ticker"),
    "finance_get_price_history": Table(key="ticker", column="price_history"),
    "finance_get_detailed_price_history": Table(key="ticker", column="detailed_price_history"),
    "finance_get_dividends_history": Table(key="ticker", column="dividends_history"),
    "finance_get_market_capitalization": Table(key="ticker", column="market_capitalization"),
    "finance_get_eps": Table(key="ticker", column="eps"),
    "finance_get_pe_ratio": Table(key="ticker", column="pe_ratio"),
    "finance_get_info": Table(key="ticker", column="info"),
    "music_search_artist_entity_by_name": Table(table="artists", find="names"),
    "music_search_song_entity_by_name": Table(table="songs", find="names"),
    "music_grammy_get_best_artist_by_year": Table(table="grammy", column="artist"),
    "music_grammy_get_award_count_by_artist": Table(table="artists", column="grammy_count"),
    "music_grammy_get_award_count_by_song": Table(table="songs", column="grammy_count"),
    "music_grammy_get_best_song_by_year": Table(table="grammy", column="song"),
    "music_grammy_get_award_date_by_artist": Table(table="artists", column="grammy_years"),
    "music_grammy_get_best_album_by_year": Table(table="grammy", column="album"),
    "music_get_artist_birth_place": Table(table="artists", column="birth_place"),
    "music_get_artist_birth_date": Table(table="artists", column="birth_date"),
    "music_get_members": Table(table="artists", column="members"),
    "music_get_lifespan": Table(table="artists", column="lifespan"),
    "music_get_song_author": Table(table="songs", column="author"),
    "music_get_song_release_country": Table(table="songs", column="release_country"),
    "music_get_song_release_date": Table(table="songs", column="release_date"),
    "music_get_artist_all_works": Table(table="artists", column="works"),
}


class LocalGraph:
    """The tables of one JSON file; functions of domains that are not in the file are not offered."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.functions = tuple(each for each in declared_functions().values() if each.domain in data)
        self._data = data

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the tables' answer; None if they have none."""
        data, given = self._data[function.domain], [arguments.get(name) for name in function.parameters]
        if function.name in _TABLES:
            return _look_up(data, _TABLES[function.name], str(given[0]))
        return _ANSWERS[function.name](data, *given)


def _equal(rows: Iterable[tuple[str, Row]], name: str) -> Row | None:
    """Return the row of exactly this name; None if there is none."""
    return next((row for key, row in rows if comparison_key(key) == comparison_key(name)), None)


def _look_up(data: Any, lookup: Table, name: str) -> Any:  # noqa: ANN401 - any JSON
    """Return the answer of a table of a domain, or of the domain's only one."""
    table = data[lookup.table] if lookup.table else data
    rows = table.items() if isinstance(table, Mapping) else ((str(row[lookup.key]), row) for row in table)
    if lookup.find == "equal":
        row = _equal(rows, name)
        return row if row is None or not lookup.column else row.get(lookup.column)
    by_name = dict(rows)
    names = similar(name, by_name)
    return names if lookup.find == "names" else [by_name[each] for each in names]


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


def serve(file: Path) -> None:
    """Serve the file until Ctrl-C."""
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    graph = LocalGraph(json.loads(file.read_text(encoding="utf-8")))
    functions = {function.path: function for function in graph.functions}

    async def answer(request: Request) -> JSONResponse:
        function, sent = functions[request.url.path], await request.json()
        names = list(function.parameters)
        arguments = {names[0]: sent["query"]} if "query" in sent and "query" not in names else sent
        return JSONResponse({"result": await graph.answer(function, arguments)})

    routes = [Route(path, answer, methods=["POST"]) for path in functions]
    uvicorn.run(Starlette(routes=routes), port=PORT)


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
