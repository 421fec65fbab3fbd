"""The findings of `sleuth doctor --model`, with a scripted model."""

import pytest

from sleuth.agents.llm.context_windows import ContextWindow
from sleuth.agents.llm.testing import ScriptedModel, reply
from sleuth.agents.model import Reply, TokenLogprob
from sleuth.studio.cli.model_checks import ask_three_questions, window_finding

YES = [TokenLogprob(token="yes", logprob=-0.1, top={"yes": -0.1, "no": -2.4})]


class StreamingModel(ScriptedModel):
    """Passes the words of a reply to the request's listener."""

    async def call(self, request: object) -> Reply:
        answered = await super().call(request)  # type: ignore[arg-type]
        listener = getattr(request, "listener", None)
        for word in answered["text"].split() if listener else ():
            listener.delta(word)
        return answered


async def test_model_with_all_features_has_three_good_findings() -> None:
    model = StreamingModel(['{"color": "violet", "letters": 6}', reply("yes", logprobs=YES), "red, green, blue"])
    findings = await ask_three_questions(model)
    assert [(each.name, each.ok, each.fix) for each in findings] == [
        ("schemas", True, ""),
        ("log-probabilities", True, ""),
        ("streaming", True, ""),
    ]
    assert findings[2].detail == "the reply came in 3 parts"
    schema, choice, _ = model.requests
    assert schema.schema is not None and choice.choices == ("yes", "no")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("Violet, of course.", "holds no complete JSON value"), ('{"color": "violet"}', "letters"), ("", "it is empty")],
)
async def test_reply_without_the_schema_s_form_fails(text: str, problem: str) -> None:
    finding, *_ = await ask_three_questions(ScriptedModel([text, "yes", "red"]))
    assert not finding.ok and "use a larger model" in finding.fix
    assert problem in finding.detail


async def test_schema_in_the_prompt_is_named_in_the_finding() -> None:
    written = Reply(**{**reply('```json\n{"color": "violet", "letters": 6}\n```'), "warnings": ["written"]})
    finding, *_ = await ask_three_questions(ScriptedModel([written, "yes", "red"]))
    assert finding.ok and "written into the prompt" in finding.detail


async def test_missing_features_that_have_a_fallback_are_no_failures() -> None:
    _, logprobs, stream = await ask_three_questions(ScriptedModel(['{"color": "violet", "letters": 6}', "yes", "red"]))
    assert (logprobs.ok, stream.ok) == (True, True)
    assert "crp-rag has no perplexity" in logprobs.detail and logprobs.fix
    assert "as a whole" in stream.detail and stream.fix


@pytest.mark.parametrize(
    ("window", "detail", "fix"),
    [
        (ContextWindow(tokens=4096, server="Ollama", remedy="More."), "m has 4,096 tokens (Ollama)", "More."),
        (ContextWindow(tokens=8192, is_assumed=True), "as the server does not report it", ""),
        (ContextWindow(tokens=32_768), "m has 32,768 tokens", ""),
    ],
)
def test_window_finding_has_the_remedy_of_a_small_window(window: ContextWindow, detail: str, fix: str) -> None:
    finding = window_finding("m", window)
    assert detail in finding.detail
    assert (finding.ok, finding.fix) == (True, fix)
