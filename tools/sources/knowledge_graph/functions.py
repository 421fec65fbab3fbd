"""Functions of a knowledge graph: those of the CRAG benchmark's mock interface (Yang et al., 2024).

They are declared in `functions.toml`. Names and parameters are the benchmark's, so that they work with its server.
Arguments are validated by a pydantic model first.
"""

from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from sleuth.tools.data_files import read_toml

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]

_TYPES: dict[str, Any] = {
    "text": Text,
    "texts": Annotated[list[Text], Field(min_length=1, max_length=10)],
    "number": Annotated[int, Field(ge=0, le=10**12)],
    "rank": Annotated[int, Field(ge=1, le=100)],
    "year": Annotated[int, Field(ge=1800, le=2200)],
    "year text": Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}$")],
    "day": Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}-\d{2}-\d{2}$")],
    "period": Annotated[str, StringConstraints(strip_whitespace=True, pattern=r"^\d{4}(-\d{2}(-\d{2})?)?$")],
    "chart value": Literal["rank_last_week", "weeks_in_chart", "top_position", "rank"],
}
"""Types of parameters."""


class TableLookup(BaseModel, frozen=True, extra="forbid"):
    """The answer of a local file to a function: a table, its column of names, and the column to return."""

    table: str = ""
    key: str = "name"
    column: str = ""
    find: Literal["equal", "names", "rows"] = "equal"


class Function(BaseModel, frozen=True, extra="forbid"):
    """One question that a graph answers.

    `path` is where the benchmark's server answers it; `parameters` has the type of each, with "?" if it is optional.
    """

    path: str
    line: str
    parameters: dict[str, str]
    lookup: TableLookup | None = None

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
        fields: dict[str, Any] = {
            name: (_TYPES[kind[:-1]] | None, None) if kind.endswith("?") else _TYPES[kind]
            for name, kind in self.parameters.items()
        }
        return create_model(self.name, __config__=ConfigDict(extra="forbid", frozen=True), **fields)

    def signature(self) -> str:
        """Return the function on one line, as models read it."""
        given = ", ".join(f"{name}{'?' if kind.endswith('?') else ''}" for name, kind in self.parameters.items())
        return f"{self.name}({given}): {self.line}"


@cache
def known_functions() -> dict[str, Function]:
    """Return all functions by name."""
    file = Path(__file__).with_name("functions.toml")
    return {each.name: each for each in read_toml(file, dict[str, list[Function]])["function"]}
