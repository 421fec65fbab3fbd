"""Thoughts in a reply: what a model writes before its answer, between the tags of its chat template."""

import re

_NAME = r"(?:\w+:)?(?:think|thinking|thought|reasoning)"
_OPENING = rf"<{_NAME}>|\[THINK\]|◁think▷|<\|channel\|>analysis<\|message\|>"
_CLOSING = rf"</{_NAME}>|\[/THINK\]|◁/think▷|<\|channel\|>final[^<]*<\|message\|>"

_THOUGHT = re.compile(rf"(?:{_OPENING}).*?(?:{_CLOSING}|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = re.compile(rf"\A.*(?:{_CLOSING})", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """Return the text without thoughts; those that are not closed extend to the end."""
    return _THOUGHT_END.sub("", _THOUGHT.sub("", text))
