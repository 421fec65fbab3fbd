"""Data files of the package, which contain tables in place of code."""

import tomllib
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

T = TypeVar("T")


def read_toml(file: Path, form: type[T]) -> T:
    """Return the content of a TOML file as a type that pydantic validates, such as `dict[str, Model]`.

    Raises:
        ValueError: the file is not TOML, or its content does not fit the type; the message names the file and place.
    """
    try:
        return TypeAdapter(form).validate_python(tomllib.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise ValueError(f"The data file {file} cannot be used: {error}") from error
