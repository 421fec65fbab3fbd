import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_model import ScriptedModel

from sleuth.agents.formatting import Source, format_sources
from sleuth.agents.model import Message
from sleuth.agents.model_calls.context_fitting import describe_loss, fit_sources, halve_sources
from sleuth.agents.roles.inputs import SourcesInput
from sleuth.tools.errors import ContextTooLong


def draft_input(*texts: str) -> SourcesInput:
    return SourcesInput(question="Where?", sources=tuple(Source(title="", text=text) for text in texts))


def build(given: SourcesInput) -> tuple[Message, ...]:
    return (Message(role="user", content=f"{format_sources(given.sources)} {given.question}"),)


async def test_fit_sources_cuts_a_source_that_outweighs_the_others() -> None:
    model = ScriptedModel(context_window=500)
    before = draft_input("word " * 1000, "small", "tiny")
    after = await fit_sources(model, "drafter", before, build, reply_tokens=100)
    assert [source.text for source in after.sources[1:]] == ["small", "tiny"]
    assert before.sources[0].text.startswith(after.sources[0].text)
    assert describe_loss(before, after) == "0 of 3 passages left out and 1 shortened: the model's context is too small"


@given(st.lists(st.integers(min_value=0, max_value=3000), max_size=8), st.integers(min_value=50, max_value=4000))
async def test_fit_sources_keeps_a_prefix_that_fits(lengths: list[int], window: int) -> None:
    before = draft_input(*("w " * length for length in lengths))
    model = ScriptedModel(context_window=window)
    try:
        after = await fit_sources(model, "drafter", before, build, reply_tokens=20)
    except ContextTooLong:
        return
    assert await model.count_tokens(build(after), role="drafter") + 20 <= window
    assert all(old.text.startswith(new.text) for old, new in zip(before.sources, after.sources, strict=False))
    assert (describe_loss(before, after) is None) == (before == after)


def test_halve_sources_keeps_the_first_or_cuts_the_only_one() -> None:
    assert halve_sources(draft_input("a", "b", "c"), "") == draft_input("a", "b")
    assert halve_sources(draft_input("x" * 1000), "") == draft_input("x" * 500)
    with pytest.raises(ContextTooLong):
        halve_sources(draft_input("short"), "")
