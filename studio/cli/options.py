"""Options that several commands have, and the settings that follow from them."""

import re
from functools import partial
from typing import Annotated, Any

import typer

from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings
from sleuth.tools.storage.filters import EXAMPLE

_SECONDS = {
    1: ("s", "sec", "second"),
    60: ("min", "minute"),
    3_600: ("h", "hour"),
    86_400: ("d", "day"),
    7 * 86_400: ("w", "week"),
    30 * 86_400: ("month",),
    365 * 86_400: ("y", "year"),
}
_UNITS = {name: seconds for seconds, names in _SECONDS.items() for name in names}
_UNITS |= {f"{name}s": seconds for name, seconds in _UNITS.items() if len(name) > 1}
_LONGEST = 100 * 365 * 86_400


def seconds_in(text: str, *, option: str) -> float:
    """Return the seconds in a number with a unit, such as `30d`, `90 min` or `3 months` (of 30 days).

    Raises:
        UsageError: the unit is missing, unknown or ambiguous, or the duration is longer than 100 years.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)", text.strip().lower())
    if match and match[2] == "m":
        months = f"{match[1]} month{'' if match[1] == '1' else 's'}"
        raise UsageError(f"{option} {text!r} is ambiguous. Write '{match[1]} min' or '{months}'.")
    if not match or match[2] not in _UNITS:
        example = "such as 90min, 12h, 30d, 2w, '3 months' or 1y"
        raise UsageError(f"{option} {text!r} is not a duration. Write a number and a unit, {example}.")
    seconds = float(match[1]) * _UNITS[match[2]]
    if seconds > _LONGEST:
        raise UsageError(f"{option} {text!r} is longer than a hundred years. Write a shorter duration.")
    return seconds


Thread = Annotated[str | None, typer.Option(help="Thread id (generated if omitted).")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show the findings and model calls of each step.")]
Where = Annotated[
    str, typer.Option("--where", metavar="FILTER", help=f"Search only documents that match, such as: {EXAMPLE}")
]
Wait = Annotated[
    float | None,
    typer.Option(
        metavar="TIME",
        parser=partial(seconds_in, option="--wait"),
        help="Wait so long for other commands that use the home: 60s by default, 0s: not.",
    ),
]
KeepOriginals = Annotated[
    bool | None,
    typer.Option(
        "--keep-originals", help="Keep copies of the files, so that citations open in them (SLEUTH_KEEP_ORIGINALS)."
    ),
]
Meta = Annotated[
    list[str] | None,
    typer.Option("--meta", metavar="NAME=TEXT", help="An own field of the documents, for --where; may be repeated."),
]
META_FORM = "--meta takes NAME=TEXT, such as client=Ada, not {!r}."
Workers = Annotated[
    int | None, typer.Option(min=1, max=256, help="Number of files to read simultaneously (SLEUTH_INGEST_WORKERS).")
]
Ray = Annotated[
    str | None,
    typer.Option("--ray", metavar="ADDRESS", help="Read, analyze and embed on a private Ray cluster (SLEUTH_RAY)."),
]


def settings_with(**options: Any) -> Settings:  # noqa: ANN401 - values of the settings
    """Return the settings with the options that were given."""
    return Settings(**{name: value for name, value in options.items() if value is not None})


def parse_pairs(
    texts: list[str] | None, problem: str = "--set takes KEY=VALUE, not {!r}. `sleuth methods` lists the settings."
) -> dict[str, Any]:
    """Return KEY=VALUE texts as a dict; raise UsageError for one without an equals sign."""
    for text in texts or []:
        if "=" not in text:
            raise UsageError(problem.format(text))
    return dict(text.split("=", 1) for text in texts or [])
