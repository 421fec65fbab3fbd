import pytest

from sleuth.graphs.registry import METHODS
from sleuth.studio.evaluation.data.systems import systems
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
    for part in METHODS[name].ablations():
        assert METHODS[name].settings.model_fields[part].default is True


def test_settings_go_to_the_methods_that_have_them() -> None:
    plain, par = systems(["plain-rag", "par-rag"], values={"top_k": "3", "par-rag.coarse_k": "4"})
    assert (plain.values, par.values) == ({"top_k": "3"}, {"coarse_k": "4"})


def test_mistakes_are_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean par-rag"):
        systems(["par-arg"])
    with pytest.raises(UnknownName, match="Did you mean top_k"):
        systems(["plain-rag"], values={"topk": "3"})
    with pytest.raises(UsageError, match="not among the methods"):
        systems(["plain-rag"], values={"ras.plan": "false"})
    with pytest.raises(UnknownName, match="setting of plain-rag"):
        systems(["plain-rag"], values={"plain-rag.topk": "3"})
    with pytest.raises(UsageError, match="top_k"):
        systems(["plain-rag"], values={"top_k": "0"})
