"""Explanations of graph search scores."""

from collections.abc import Mapping

from rich.text import Text

from sleuth.tools.types import Explanation, Reason

_KINDS: Mapping[str, str] = {
    "names": "{source} names it: “{name}”",
    "named_by": "it names {source}: “{name}”",
    "shares": "{source} and it both name “{name}”",
    "walks": "from {source} by the name “{name}”",
    "states": "from {source} by the triple “{name}”",
}


def explanation_lines(why: Explanation) -> list[Text]:
    """Return the parts of the score, then each link with the sentence that contains the name."""
    parts = ", ".join(f"{name} {_short(value)}" for name, value in why.parts.items() if value)
    lines = [Text(f"   · {parts}", style="dim")]
    if why.note:
        lines.append(Text(f"   · {why.note}", style="yellow"))
    for reason in why.reasons:
        lines += _reason_lines(reason)
    return lines


def _reason_lines(reason: Reason) -> list[Text]:
    head = _KINDS[reason.kind].format(source=reason.source or "the query", name=" ".join(reason.name.split()))
    sentence = " ".join(reason.sentence.split())
    return [
        Text(f"   · {head} (+{_short(reason.gain)})", style="cyan"),
        Text(f"     {reason.stands_in}: {sentence}", style="dim"),
    ]


def _short(value: float) -> str:
    """Return two decimals, or one significant digit for small values."""
    return f"{value:.2f}" if abs(value) >= 0.005 else f"{value:.1g}"
