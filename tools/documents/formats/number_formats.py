"""Values of cells and charts as people read them."""

import re
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal

_CODE = re.compile(
    r'"(?P<text>[^"]*)"|\\(?P<escaped>.)|\[\$(?P<currency>[^\[\]-]*+)[^\[\]]*+\]|\[[^\[\]]*+\]|[_*].'
    r"|(?P<digits>[#0?][#0?,]*(?:\.[#0?]*)?|\.[#0?]+)|(?P<other>.)"
)
"""Parts of a number format such as `#,##0.00 "EUR"`; conditions, colors and spaces of a width are left out."""
_EXACT = Context(prec=400, rounding=ROUND_HALF_UP)
_NOT_DECIMAL = re.compile(r"general|e[+-]|[@/]|[#0?] +[#0?]", re.IGNORECASE)
"""Formats of other kinds: the number as it is, scientific, text, fractions."""


def cell_text(value: object, code: str = "General") -> str:
    """Return a value, such as a number in a format of Excel or a date; empty for None."""
    if value is None:
        return ""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, date | time):
        return value.isoformat(" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, timedelta):
        minutes, seconds = divmod(round(value.total_seconds()), 60)
        return f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return format_number(value, code)
    return str(value)


def format_number(value: float, code: str) -> str:
    """Return a number in a format of Excel: decimals, thousands, percent, leading zeros, units and currencies."""
    sections = code.split(";")
    code = sections[1] if value < 0 and len(sections) > 1 else sections[0]
    parts = list(_CODE.finditer(code))
    digits = next((part["digits"] for part in parts if part["digits"]), "")
    if not digits or _NOT_DECIMAL.search(re.sub(r'"[^"]*"|\[[^\]]*\]', "", code)):
        return f"{value:.15g}" if isinstance(value, float) else str(value)
    whole, _, places = digits.rstrip(",").partition(".")
    percents = sum(part["other"] == "%" for part in parts)
    scaled = Decimal(repr(value)).scaleb(2 * percents - 3 * (len(digits) - len(digits.rstrip(","))), _EXACT)
    rounded = scaled.quantize(Decimal(1).scaleb(-len(places)), context=_EXACT).copy_abs()
    before, _, after = f"{rounded:{',' if ',' in whole else ''}f}".partition(".")
    after = after[: places.count("0")] + after[places.count("0") :].rstrip("0")
    number = before.zfill(whole.count("0")) + (f".{after}" if after else "")
    sign = "-" if value < 0 and len(sections) == 1 else ""
    literals = (part["text"] or part["escaped"] or part["currency"] or part["other"] or "" for part in parts)
    pieces = (number if part["digits"] == digits else text for part, text in zip(parts, literals, strict=True))
    return (sign + "".join(pieces)).strip()
