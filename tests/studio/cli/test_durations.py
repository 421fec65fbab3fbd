import pytest

from sleuth.studio.cli.durations import seconds_in
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


@pytest.mark.parametrize("text", ["1m", "1 M", "12m"])
def test_seconds_in_bare_m_is_refused_as_ambiguous(text: str) -> None:
    with pytest.raises(UsageError, match=r"ambiguous. Write '[0-9]+ min' or '(1 month|12 months)'"):
        seconds_in(text, option="--older-than")


@pytest.mark.parametrize("text", ["", "30", "d", "30 fortnights", "-1d", "1d 2h", "٣d", "ds", "1ss", "nan d"])
def test_seconds_in_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"--older-than .* is not a duration.*30d"):
        seconds_in(text, option="--older-than")


@pytest.mark.parametrize("text", ["101 years", "9999999d", "9" * 400 + "d"])
def test_seconds_in_more_than_a_century_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="hundred years"):
        seconds_in(text, option="--older-than")
