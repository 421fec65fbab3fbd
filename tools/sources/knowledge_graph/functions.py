"""Functions of a knowledge graph: those of the CRAG benchmark's mock interface (Yang et al., 2024).

Names and parameters are the benchmark's, so that they work with its server. Arguments are validated by a pydantic model
first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
Year = Annotated[int, Field(ge=1800, le=2200)]
Number = Annotated[int, Field(ge=0, le=10**12)]
Rank = Annotated[int, Field(ge=1, le=100)]
Day = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}-\d{2}-\d{2}$")]
Period = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")]
YearText = Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}$")]
Texts = Annotated[list[Text], Field(min_length=1, max_length=10)]
ChartValue = Literal["rank_last_week", "weeks_in_chart", "top_position", "rank"]


@dataclass(frozen=True, kw_only=True)
class Function:
    """One question that a graph answers.

    `path` is where the benchmark's server answers it; `parameters` has the type of each, or its type and default.
    """

    path: str
    line: str
    parameters: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name, made of the path: `movie_get_movie_info` for `/movie/get_movie_info`."""
        return self.path[1:].replace("/", "_")

    @property
    def domain(self) -> str:
        """The domain that it belongs to, one of the benchmark's five."""
        return self.path.split("/")[1]

    @cached_property
    def arguments(self) -> type[BaseModel]:
        """The model that arguments have to fit; nothing beyond it is allowed."""
        return create_model(self.name, __config__=ConfigDict(extra="forbid", frozen=True), **self.parameters)

    def signature(self) -> str:
        """Return the function on one line, as models read it."""
        fields = self.arguments.model_fields.items()
        given = ", ".join(f"{name}{'' if field.is_required() else '?'}" for name, field in fields)
        return f"{self.name}({given}): {self.line}"


def _function(path: str, line: str, /, **parameters: Any) -> Function:  # noqa: ANN401 - types
    return Function(path=f"/{path}", line=line, parameters=parameters)


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        _function("open/search_entity_by_name", "names of the entities that are called like this", name=Text),
        _function("open/get_entity", "summary and facts of an entity", entity=Text),
        _function("movie/get_person_info", "people of the cinema with films, birthday and Oscars", person_name=Text),
        _function(
            "movie/get_movie_info", "films with date, cast, crew, budget, revenue, rating and Oscars", movie_name=Text
        ),
        _function("movie/get_year_info", "the films and Oscars of a year", year=YearText),
        _function("movie/get_movie_info_by_id", "a film by its number", id=Number),
        _function("movie/get_person_info_by_id", "a person by number", id=Number),
        _function("finance/get_company_name", "full names of companies that are called like this", name=Text),
        _function("finance/get_ticker_by_name", "the ticker symbol of a company", name=Text),
        _function("finance/get_price_history", "a year of daily prices", ticker_name=Text),
        _function(
            "finance/get_detailed_price_history", "the latest five days of prices by the minute", ticker_name=Text
        ),
        _function("finance/get_dividends_history", "dividends by day", ticker_name=Text),
        _function("finance/get_market_capitalization", "market capitalisation", ticker_name=Text),
        _function("finance/get_eps", "earnings per share", ticker_name=Text),
        _function("finance/get_pe_ratio", "price to earnings", ticker_name=Text),
        _function("finance/get_info", "what is known of a company", ticker_name=Text),
        _function("music/search_artist_entity_by_name", "artists that are called like this", artist_name=Text),
        _function("music/search_song_entity_by_name", "songs that are called like this", song_name=Text),
        _function(
            "music/get_billboard_rank_date",
            "songs and artists that had a place in the chart",
            rank=Rank,
            date=(Day | None, None),
        ),
        _function(
            "music/get_billboard_attributes",
            "one value of a song in the chart of a day",
            date=Day,
            attribute=ChartValue,
            song_name=Text,
        ),
        _function("music/grammy_get_best_artist_by_year", "Grammy: best new artist of a year", year=Year),
        _function("music/grammy_get_award_count_by_artist", "Grammy: how many an artist has won", artist_name=Text),
        _function("music/grammy_get_award_count_by_song", "Grammy: how many a song has won", song_name=Text),
        _function("music/grammy_get_best_song_by_year", "Grammy: song of a year", year=Year),
        _function(
            "music/grammy_get_award_date_by_artist", "Grammy: the years in which an artist has won", artist_name=Text
        ),
        _function("music/grammy_get_best_album_by_year", "Grammy: album of a year", year=Year),
        _function("music/grammy_get_all_awarded_artists", "Grammy: all best new artists"),
        _function("music/get_artist_birth_place", "the country where an artist was born", artist_name=Text),
        _function("music/get_artist_birth_date", "when an artist was born, or a band began", artist_name=Text),
        _function("music/get_members", "the members of a band", band_name=Text),
        _function("music/get_lifespan", "the dates of an artist's birth and death", artist_name=Text),
        _function("music/get_song_author", "who wrote a song", song_name=Text),
        _function("music/get_song_release_country", "the country where a song came out", song_name=Text),
        _function("music/get_song_release_date", "when a song came out", song_name=Text),
        _function("music/get_artist_all_works", "all works of an artist", artist_name=Text),
        _function(
            "sports/soccer/get_games_on_date",
            "football games with goals and results",
            date=Period,
            team_name=(Text | None, None),
        ),
        _function(
            "sports/nba/get_games_on_date",
            "basketball games with points and results",
            date=Period,
            team_name=(Text | None, None),
        ),
        _function(
            "sports/nba/get_play_by_play_data_by_game_ids",
            "what happened in basketball games, play by play",
            game_ids=Texts,
        ),
    )
}
"""By name."""
