from scripted_model import ScriptedModel

from sleuth.agents.formatting import Source, format_sources
from sleuth.agents.model import Message
from sleuth.agents.model_calls.context_fitting import describe_loss, fit_sources
from sleuth.agents.roles.inputs import SourcesInput


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
