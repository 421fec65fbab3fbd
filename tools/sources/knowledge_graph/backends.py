"""Backends of the knowledge graph: a server, the collection's triples, or a file.

A file is JSON with a part for each domain: `open` (entities by name), `movie` (`movies`, `people`), `finance`
(companies), `music` (`artists`, `songs`, `chart`, `grammy`) and `sports` (`soccer`, `nba`, `plays`); see
`examples/knowledge_graph.json`.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Self

import httpx2

from sleuth.tools.errors import StoreError
from sleuth.tools.http import UnusableReply, bounded_async_client
from sleuth.tools.settings import client_options
from sleuth.tools.sources.knowledge_graph.functions import (
    Function,
    GraphUnavailable,
    KnowledgeGraph,
    TableLookup,
    known_functions,
)
from sleuth.tools.storage.triples import SqlTriples
from sleuth.tools.text.normalization import comparison_key

Row = dict[str, Any]

MAX_FOUND = 10
"""Names or rows that a search in a file gives."""
MAX_FACTS = 40
"""Facts given of one entity."""


class ServedGraph:
    """A knowledge graph behind the URL of a client; answers all functions."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.functions = tuple(known_functions().values())
        self._client = client

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return the server's `result`; raise GraphUnavailable for any other response."""
        # The benchmark's server takes the only argument of a function as `query`, except the ids of games.
        by_name = len(function.parameters) > 1 or "game_ids" in arguments
        sent = {name if by_name else "query": value for name, value in arguments.items()}
        try:
            response = await self._client.post(function.path, json=sent)
            return response.raise_for_status().json()["result"]
        except httpx2.HTTPStatusError as error:
            raise GraphUnavailable(f"the server answers {error.response.status_code} to {function.path}") from error
        except UnusableReply as error:
            raise GraphUnavailable(f"the server's answer to {function.path} cannot be used: {error}") from error
        except httpx2.HTTPError as error:
            raise GraphUnavailable(f"{self._client.base_url} does not answer: {type(error).__name__}") from error
        except (ValueError, KeyError, TypeError) as error:
            raise GraphUnavailable(f"the server's answer to {function.path} has no result in JSON") from error


class CollectionGraph:
    """A graph of the triples that RAS has extracted so far; answers the two functions on open entities."""

    def __init__(self, triples: SqlTriples) -> None:
        known = known_functions()
        self.functions = (known["open_search_entity_by_name"], known["open_get_entity"])
        self._triples = triples

    async def answer(self, function: Function, arguments: dict[str, Any]) -> Any:  # noqa: ANN401 - any JSON
        """Return names for a search; for an entity its facts, each with its passage."""
        if function.name == "open_search_entity_by_name":
            name = arguments["name"]
            found = await self._triples.naming(name) or await self._triples.naming(max(name.split(), key=len))
            return similar(name, {end for (subject, _, object), _ in found for end in (subject, object)})
        entity = arguments["entity"]
        facts = [
            {"subject": subject, "predicate": predicate, "object": object, "passage": passage}
            for (subject, predicate, object), passage in await self._triples.naming(entity)
            if comparison_key(entity) in (comparison_key(subject), comparison_key(object))
        ]
        return facts[:MAX_FACTS] or None


class LocalGraph:
    """The tables of one JSON file in memory; functions of domains that are not in the file are not offered."""

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


@asynccontextmanager
async def open_graph(
    place: str | None, triples: SqlTriples | None = None, *, proxy: str | None = None
) -> AsyncIterator[KnowledgeGraph | None]:
    """Open the graph at a place as in the settings.

    Without a place it is the collection's triples, and None if there are none. A server is not contacted yet. Raises
    StoreError for an unreadable file. Graphs are made in a thread, since the first one reads the list of functions.
    """
    if place is None:
        yield await asyncio.to_thread(CollectionGraph, triples) if triples and await triples.any() else None
    elif is_url(place):
        options = client_options(place, proxy) | {"base_url": place, "timeout": 10.0}
        async with await asyncio.to_thread(bounded_async_client, options) as client:
            yield await asyncio.to_thread(ServedGraph, client)
    else:
        yield await asyncio.to_thread(lambda: LocalGraph.read(Path(place).expanduser()))


def is_url(place: str) -> bool:
    """Return whether a place is a server rather than a file."""
    return place.lower().startswith(("http://", "https://"))
