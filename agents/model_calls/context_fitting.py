"""Fitting a prompt into the model's context window: only passages are dropped or cut, the last ones first."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sleuth.agents.formatting import Source
from sleuth.agents.model import Message, Model
from sleuth.agents.role import I
from sleuth.tools.errors import ContextTooLong

_TEMPLATE = 64
"""Tokens that a chat template may add, in all and once more per message."""

_SHORTEST = 200
"""Characters below which a passage is not cut."""

Build = Callable[[I], tuple[Message, ...]]


async def fit_sources(model: Model, role: str, input: I, build: Build[I], *, reply_tokens: int) -> I:
    """Return the input with as many of its sources as leave room for the reply.

    Args:
        model: counts the tokens; only asked if the prompt has more bytes than fit, as a token is at least one byte.
        role: the role's name.
        input: the input of the role.
        build: renders an input.
        reply_tokens: tokens reserved for the reply.

    Raises:
        ContextTooLong: the prompt does not fit even without sources.
    """
    room = model.context_window - reply_tokens
    while True:
        messages = build(input)
        most = _TEMPLATE + sum(len(message["content"].encode("utf-8", "replace")) + _TEMPLATE for message in messages)
        if most <= room or await model.count_tokens(messages, role=role) <= room:
            return input
        input = _with(input, _smaller(sources_of(input)))


def halve_sources(input: I, reason: str) -> I:
    """Return the input with half its sources, or half of its only one; raise ContextTooLong if it has none.

    `reason` is that of the server, which found the prompt too long.
    """
    sources = sources_of(input)
    try:
        return _with(input, sources[: (len(sources) + 1) // 2] if len(sources) > 1 else _smaller(sources))
    except ContextTooLong as error:
        raise ContextTooLong(f"{reason} {error}".strip()) from error


def sources_of(input: object) -> tuple[Source, ...]:
    """Return the passages of a role's input; empty if it has none."""
    sources: tuple[Source, ...] = getattr(input, "sources", ())
    return sources


def describe_loss(before: object, after: object) -> str | None:
    """Return a warning that describes the passages dropped or cut; None if there are none."""
    had, has = sources_of(before), sources_of(after)
    if had == has:
        return None
    cut = sum(old != new for old, new in zip(had, has, strict=False))
    shortened = f" and {cut} shortened" if cut else ""
    return f"{len(had) - len(has)} of {len(had)} passages left out{shortened}: the model's context is too small"


def _smaller(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Return the sources with the longest one halved if it outweighs all others, else without the last one."""
    longest = max((len(source.text) for source in sources), default=0)
    if longest > _SHORTEST and longest * 2 > sum(len(source.text) for source in sources):
        half = longest // 2
        return tuple(
            replace(source, text=source.text[:half]) if len(source.text) == longest else source for source in sources
        )
    if len(sources) > 1:
        return sources[:-1]
    raise ContextTooLong("The question is too long for the model's context: shorten it, or use a larger model.")


def _with(input: I, sources: tuple[Source, ...]) -> I:
    changed: Any = {"sources": sources}
    return replace(input, **changed)
