"""Settings that go beyond a paper are off under `profile=paper`, as their descriptions state."""

import re
from typing import Any

import pytest

from sleuth.graphs.core.context import InPaper
from sleuth.graphs.core.method import Method
from sleuth.graphs.registry import METHODS, configure, runnable

NAMED = re.compile(r"\(paper(?: profile)?: ([\w-]+)\)")


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_settings_marked_as_ours_are_off_in_the_paper_profile(method: Method) -> None:
    default, published = method.settings(), configure(method, {}, "paper")
    for name, field in method.settings.model_fields.items():
        value, meaning = getattr(published, name), field.description or ""
        if found := NAMED.search(meaning):
            assert str(value) in (found[1], found[1].capitalize()), name
        elif meaning.startswith("ours:"):
            assert value in (False, 0), name
        else:
            assert value == getattr(default, name) or "(paper" in meaning, name


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_explicit_setting_applies_in_the_paper_profile(method: Method) -> None:
    for name, in_paper in method.settings.annotated(InPaper).items():
        default = getattr(method.settings(), name)
        assert default != in_paper.value
        assert getattr(configure(method, {name: default}, "paper"), name) == default


@pytest.mark.parametrize(
    ("method", "stored", "now"),
    [
        ("reader", {"hops": 1}, {"max_searches": 1}),
        ("auto", {"hop_settings": {"reader": {"hops": 1}}}, {"settings_by_method": {"reader": {"hops": 1}}}),
        ("report", {"min_support": 0.1}, {"min_sentence_support": 0.1}),
    ],
)
def test_setting_of_a_stored_run_applies_under_its_new_name(
    method: str, stored: dict[str, Any], now: dict[str, Any]
) -> None:
    assert configure(runnable(method), stored, "default") == configure(runnable(method), now, "default")
    assert configure(runnable(method), stored, "default") != configure(runnable(method), {}, "default")


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_descriptions_of_ablations_are_marked_in_the_schema(method: Method) -> None:
    shown = {name: field["description"] for name, field in method.settings.model_json_schema()["properties"].items()}
    assert shown == {name: field.description for name, field in method.settings.model_fields.items()}
    ablations = {name for values in method.ablations().values() for name in values}
    assert {name for name, text in shown.items() if text.endswith(" (ablation)")} == ablations
