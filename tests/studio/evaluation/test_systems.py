import pytest

from sleuth.graphs.registry import METHODS
from sleuth.studio.evaluation.data import systems
from sleuth.tools.errors import UnknownName, UsageError


def names(*methods: str, **options: object) -> list[str]:
    return [system.name for system in systems(methods, **options)]  # type: ignore[arg-type]


def test_profiles_and_ablations_are_lines_of_their_own() -> None:
    assert names("plain-rag", "par-rag") == ["plain-rag", "par-rag"]
    assert names("plain-rag", profiles=("default", "paper")) == ["plain-rag", "plain-rag paper"]
    assert names(ablations=["par-rag"]) == ["par-rag", "par-rag without plan", "par-rag without review"]
    assert names("ras", ablations=["ras"], profiles=("paper",))[1] == "ras paper without retrieve"


def test_an_ablation_switches_one_part_off() -> None:
    _, without, _ = systems([], ablations=["par-rag"])
    assert without.record()["settings"]["plan"] is False
    assert without.record()["settings"]["review"] is True


def test_a_ladder_is_a_line_for_each_of_its_rungs() -> None:
    whole, first, *_, last = systems([], ladders=["hybrid-rag"])
    assert (whole.name, first.name, last.name) == ("hybrid-rag", "hybrid-rag up to llm", "hybrid-rag up to full")
    assert first.record()["settings"]["retrieve"] is False
    assert last.record()["settings"] == {**whole.record()["settings"], "rung": "full"}
    with pytest.raises(UsageError, match="no ladder"):
        systems([], ladders=["ras"])


@pytest.mark.parametrize("name", METHODS)
def test_what_is_called_an_ablation_can_be_switched_off(name: str) -> None:
    for part, values in METHODS[name].ablations().items():
        ((setting, value),) = values.items()
        assert part == (f"with {setting}={value}" if value else f"without {setting}")
        assert METHODS[name].settings.model_fields[setting].default == ("graph" if value else True)


def test_settings_go_to_the_methods_that_have_them() -> None:
    plain, par = systems(["plain-rag", "par-rag"], values={"top_k": "3", "par-rag.coarse_k": "4"})
    assert (plain.values, par.values) == ({"top_k": "3"}, {"coarse_k": "4"})


@pytest.mark.parametrize(
    ("method", "values", "error", "message"),
    [
        ("par-arg", {}, UnknownName, "Did you mean par-rag"),
        ("plain-rag", {"topk": "3"}, UnknownName, "Did you mean top_k"),
        ("plain-rag", {"ras.plan": "false"}, UsageError, "not among the methods"),
        ("plain-rag", {"plain-rag.topk": "3"}, UnknownName, "setting of plain-rag"),
        ("plain-rag", {"top_k": "0"}, UsageError, "top_k"),
    ],
)
def test_mistakes_are_named(method: str, values: dict[str, str], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        systems([method], values=values)
