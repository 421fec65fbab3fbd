import pytest

from sleuth.studio.cli.options import seconds_in
from sleuth.tools.errors import UsageError

DAY = 86_400


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0s", 0),
        ("90 min", 5_400),
        ("1 minute", 60),
        ("12h", 12 * 3_600),
        ("1.5 hours", 5_400),
        (" 30d ", 30 * DAY),
        ("1 day", DAY),
        ("2W", 14 * DAY),
        ("3 months", 90 * DAY),
        ("1 month", 30 * DAY),
        ("1y", 365 * DAY),
    ],
)
def test_seconds_in_duration_is_its_length(text: str, seconds: float) -> None:
    assert seconds_in(text, option="--older-than") == seconds


AMBIGUOUS = r"ambiguous. Write '[0-9]+ min' or '(1 month|12 months)'"
UNKNOWN = r"--older-than .* is not a duration.*30d"
WRONG = {
    **dict.fromkeys(["1m", "1 M", "12m"], AMBIGUOUS),
    **dict.fromkeys(["", "30", "d", "30 fortnights", "-1d", "1d 2h", "٣d", "ds", "1ss", "nan d"], UNKNOWN),
    **dict.fromkeys(["101 years", "9" * 400 + "d"], "hundred years"),
}


@pytest.mark.parametrize("text", WRONG)
def test_seconds_in_other_text_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(UsageError, match=WRONG[text]):
        seconds_in(text, option="--older-than")
