"""Functions of a knowledge graph: those of the CRAG benchmark's mock interface (Yang et al., 2024).

Names and parameters are the benchmark's, so that they work with its server. Arguments are validated by a pydantic model
first.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

Domain = Literal["open", "movie", "finance", "music", "sports"]

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Year = Annotated[int, Field(ge=1800, le=2200)]
Number = Annotated[int, Field(ge=0, le=10**12)]
Rank = Annotated[int, Field(ge=1, le=100)]
Day = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}-\d{2}-\d{2}$")]
Period = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]
YearText = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}$")]
Texts = Annotated[list[Text], Field(min_length=1, max_length=10)]
ChartValue = Literal["rank_last_week", "weeks_in_chart", "top_position", "rank"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Parameter:
    """One argument: its name for callers, its name in a request, its type, and whether it may be left out."""

    name: str
    sent_as: str
    kind: Any
    line: str
    optional: bool = False


@dataclass(frozen=True, kw_only=True)
class Function:
    """One question that a graph answers; `path` is where the benchmark's server answers it."""

    name: str
    domain: Domain
    path: str
    line: str
    parameters: tuple[Parameter, ...]

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model that arguments have to fit; nothing beyond it is allowed."""
        fields: dict[str, Any] = {
            each.name: (
                each.kind | None if each.optional else each.kind,
                Field(default=None if each.optional else ..., description=each.line),
            )
            for each in self.parameters
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid", frozen=True), **fields)

    def signature(self) -> str:
        """Return the function on one line, as models read it."""
        given = ", ".join(f"{each.name}{'?' if each.optional else ''}" for each in self.parameters)
        return f"{self.name}({given}): {self.line}"


def _asks(domain: Domain, action: str, line: str, *parameters: Parameter, under: str = "") -> Function:
    place = f"{domain}/{under}" if under else domain
    return Function(
        name=f"{place.replace('/', '_')}_{action}",
        domain=domain,
        path=f"/{place}/{action}",
        line=line,
        parameters=parameters,
    )


def _one(name: str, kind: Any, line: str) -> Parameter:  # noqa: ANN401 - a type
    """Return the only argument of a function goes by "query" in a request."""
    return Parameter(name=name, sent_as="query", kind=kind, line=line)


def _named(name: str, kind: Any, line: str, *, optional: bool = False) -> Parameter:  # noqa: ANN401 - a type
    return Parameter(name=name, sent_as=name, kind=kind, line=line, optional=optional)


_NAME = _one("name", Text, "a name, or a part of one")
_ENTITY = _one("entity", Text, "the exact name of an entity")
_PERSON = _one("person_name", Text, "an actor's or director's name")
_MOVIE = _one("movie_name", Text, "a film's title")
_MOVIE_YEAR = _one("year", YearText, "a year, as text")
_ID = _one("id", Number, "the number of a film or person")
_COMPANY = _one("name", Text, "a company's name")
_TICKER = _one("ticker_name", Text, "a ticker symbol")
_ARTIST = _one("artist_name", Text, "a musician or band")
_SONG = _one("song_name", Text, "a song's title")
_BAND = _one("band_name", Text, "a band")
_AWARD_YEAR = _one("year", Year, "a year")
_TEAM = _named("team_name", Text, "a team; left out, all games", optional=True)
_PERIOD = _named("date", Period, "a day, month or year: 2024-03-09, 2024-03 or 2024")

FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        _asks("open", "search_entity_by_name", "names of the entities that are called like this", _NAME),
        _asks("open", "get_entity", "summary and facts of an entity", _ENTITY),
        _asks("movie", "get_person_info", "people of the cinema with films, birthday and Oscars", _PERSON),
        _asks("movie", "get_movie_info", "films with date, cast, crew, budget, revenue, rating and Oscars", _MOVIE),
        _asks("movie", "get_year_info", "the films and Oscars of a year", _MOVIE_YEAR),
        _asks("movie", "get_movie_info_by_id", "a film by its number", _ID),
        _asks("movie", "get_person_info_by_id", "a person by number", _ID),
        _asks("finance", "get_company_name", "full names of companies that are called like this", _NAME),
        _asks("finance", "get_ticker_by_name", "the ticker symbol of a company", _COMPANY),
        _asks("finance", "get_price_history", "a year of daily prices", _TICKER),
        _asks("finance", "get_detailed_price_history", "the latest five days of prices by the minute", _TICKER),
        _asks("finance", "get_dividends_history", "dividends by day", _TICKER),
        _asks("finance", "get_market_capitalization", "market capitalisation", _TICKER),
        _asks("finance", "get_eps", "earnings per share", _TICKER),
        _asks("finance", "get_pe_ratio", "price to earnings", _TICKER),
        _asks("finance", "get_info", "what is known of a company", _TICKER),
        _asks("music", "search_artist_entity_by_name", "artists that are called like this", _ARTIST),
        _asks("music", "search_song_entity_by_name", "songs that are called like this", _SONG),
        _asks(
            "music",
            "get_billboard_rank_date",
            "songs and artists that had a place in the chart",
            _named("rank", Rank, "the place"),
            _named("date", Day, "the day; left out, all days", optional=True),
        ),
        _asks(
            "music",
            "get_billboard_attributes",
            "one value of a song in the chart of a day",
            _named("date", Day, "the day"),
            _named("attribute", ChartValue, "rank_last_week, weeks_in_chart, top_position or rank"),
            _named("song_name", Text, "a song's title"),
        ),
        _asks("music", "grammy_get_best_artist_by_year", "Grammy: best new artist of a year", _AWARD_YEAR),
        _asks("music", "grammy_get_award_count_by_artist", "Grammy: how many an artist has won", _ARTIST),
        _asks("music", "grammy_get_award_count_by_song", "Grammy: how many a song has won", _SONG),
        _asks("music", "grammy_get_best_song_by_year", "Grammy: song of a year", _AWARD_YEAR),
        _asks("music", "grammy_get_award_date_by_artist", "Grammy: the years in which an artist has won", _ARTIST),
        _asks("music", "grammy_get_best_album_by_year", "Grammy: album of a year", _AWARD_YEAR),
        _asks("music", "grammy_get_all_awarded_artists", "Grammy: all best new artists"),
        _asks("music", "get_artist_birth_place", "the country where an artist was born", _ARTIST),
        _asks("music", "get_artist_birth_date", "when an artist was born, or a band began", _ARTIST),
        _asks("music", "get_members", "the members of a band", _BAND),
        _asks("music", "get_lifespan", "the dates of an artist's birth and death", _ARTIST),
        _asks("music", "get_song_author", "who wrote a song", _SONG),
        _asks("music", "get_song_release_country", "the country where a song came out", _SONG),
        _asks("music", "get_song_release_date", "when a song came out", _SONG),
        _asks("music", "get_artist_all_works", "all works of an artist", _ARTIST),
        _asks("sports", "get_games_on_date", "football games with goals and results", _PERIOD, _TEAM, under="soccer"),
        _asks("sports", "get_games_on_date", "basketball games with points and results", _PERIOD, _TEAM, under="nba"),
        _asks(
            "sports",
            "get_play_by_play_data_by_game_ids",
            "what happened in basketball games, play by play",
            _named("game_ids", Texts, "the ids of games"),
            under="nba",
        ),
    )
}
"""By name."""
