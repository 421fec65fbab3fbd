"""Durations on the command line, such as `60s` and `30d`."""

import re

from sleuth.tools.errors import UsageError

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
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)", text.strip().lower())
    if found and found[2] == "m":
        months = f"{found[1]} month{'' if found[1] == '1' else 's'}"
        raise UsageError(f"{option} {text!r} is ambiguous. Write '{found[1]} min' or '{months}'.")
    if not found or found[2] not in _UNITS:
        example = "such as 90min, 12h, 30d, 2w, '3 months' or 1y"
        raise UsageError(f"{option} {text!r} is not a duration. Write a number and a unit, {example}.")
    seconds = float(found[1]) * _UNITS[found[2]]
    if seconds > _LONGEST:
        raise UsageError(f"{option} {text!r} is longer than a hundred years. Write a shorter duration.")
    return seconds
