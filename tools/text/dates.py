"""Dates in texts."""

import re
from datetime import datetime

_YEAR = re.compile(r"\d{4}")


def read_date(text: str) -> str | None:
    """Return the date in a text as YYYY-MM-DD, YYYY-MM or YYYY, as far as it is given; None without one.

    >>> read_date("Built in May 1911.")
    '1911-05'
    """
    from dateutil import parser

    if _YEAR.fullmatch(text.strip()):
        return text.strip()
    try:
        one, other = (
            parser.parse(text, default=datetime(year, month, day), fuzzy=True, dayfirst=not re.match(r"\s*\d{4}", text))
            for year, month, day in ((2000, 1, 1), (2004, 2, 2))
        )
    except (ValueError, OverflowError):
        years = re.findall(r"\b\d{4}\b", text)
        return years[0] if len(years) == 1 else None
    if one.year != other.year:
        return None
    if one.month != other.month:
        return f"{one.year:04}"
    return f"{one:%Y-%m}" if one.day != other.day else f"{one:%Y-%m-%d}"
