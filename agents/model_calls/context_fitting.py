"""Making a prompt fit the model's context: only passages give way, the last ones first."""

from collections.abc import Callable
from dataclasses import replace

from sleuth.agents.formatting import Source
from sleuth.agents.model import Message, Model
from sleuth.agents.role import I
from sleuth.tools.errors import ContextTooLong

_TEMPLATE = 64
"""Tokens that a chat template may add, in all and once more per message."""

_SHORTEST = 200
"""A passage is not cut below so many characters."""

Build = Callable[[I], tuple[Message, ...]]


async def fit(model: Model, role: str, given: I, build: Build[I], *, reply_tokens: int) -> I:
    """The input with as many of its sources as leave room for the reply; raises ContextTooLong."""
    room = model.context_window - reply_tokens
    while not await _fits(model, role, build(given), room):
        given = _with(given, _smaller(sources_of(given)))
    return given


async def _fits(model: Model, role: str, messages: tuple[Message, ...], room: int) -> bool:
    """Asks the tokenizer only where it matters: a token is at least one byte."""
    most = _TEMPLATE + sum(len(message["content"].encode("utf-8", "replace")) + _TEMPLATE for message in messages)
    return most <= room or await model.count_tokens(messages, role=role) <= room


def halve(given: I) -> I:
    """The input with half its sources, or half of its only one; raises ContextTooLong where there is none."""
    sources = sources_of(given)
    if len(sources) > 1:
        return _with(given, sources[: (len(sources) + 1) // 2])
    return _with(given, _smaller(sources))


def sources_of(given: object) -> tuple[Source, ...]:
    """The passages of a role's input; empty where it has none."""
    sources: tuple[Source, ...] = getattr(given, "sources", ())
    return sources


def loss(before: object, after: object) -> str | None:
    """What shrinking took away, as a warning."""
    had, has = sources_of(before), sources_of(after)
    if had == has:
        return None
    cut = sum(old != new for old, new in zip(had, has, strict=False))
    shortened = f" and {cut} shortened" if cut else ""
    return f"{len(had) - len(has)} of {len(had)} passages left out{shortened}: the model's context is too small"


def _smaller(sources: tuple[Source, ...]) -> tuple[Source, ...]:
    """Half of the longest source if it outweighs all others, else without the last one."""
    longest = max((len(source.text) for source in sources), default=0)
    if longest > _SHORTEST and longest * 2 > sum(len(source.text) for source in sources):
        return tuple(_cut(source, longest // 2) if len(source.text) == longest else source for source in sources)
    if len(sources) > 1:
        return sources[:-1]
    raise ContextTooLong("The question is too long for the model's context: shorten it, or use a larger model.")


def _cut(source: Source, length: int) -> Source:
    return replace(source, text=source.text[:length])


def _with(given: I, sources: tuple[Source, ...]) -> I:
    return replace(given, sources=sources)
