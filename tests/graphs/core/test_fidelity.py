"""Methods declare how they follow their papers."""

import importlib
from typing import Any

import pytest

from sleuth.graphs.core.context import InPaper
from sleuth.graphs.core.method import PaperPart
from sleuth.graphs.registry import METHODS

PARTS = [
    pytest.param(method, part, id=f"{method.name}: {key}")
    for method in METHODS.values()
    for key, part in method.parts.items()
]
PUBLISHED = ("crp-rag", "hybrid-rag", "par-rag", "ras", "retro-rag")


def resolve(name: str) -> object:
    """Return the module or attribute of a dotted name below the package, or of `training`."""
    full = name if name.startswith("training.") else f"sleuth.{name}"
    module, _, attribute = full.rpartition(".")
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(module), attribute)


@pytest.mark.parametrize(("method", "part"), PARTS)
def test_part_names_code_and_settings_that_exist(method: Any, part: PaperPart) -> None:
    assert part.part
    assert part.source
    unknown = set(part.settings) - method.settings.model_fields.keys()
    assert not unknown, f"fidelity.toml of {method.name}: {unknown} are no settings of it"
    assert all(resolve(name) for name in part.code)
    assert part.code or part.status in ("deviates", "not implemented")
    assert part.note or part.status == "as published"


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_setting_that_goes_beyond_a_paper_belongs_to_a_part(name: str) -> None:
    method = METHODS[name]
    controlled = {setting for part in method.parts.values() for setting in part.settings}
    beyond = {setting for values in method.ablations().values() for setting in values}
    missing = (beyond | method.settings.annotated(InPaper).keys()) - controlled
    assert not missing, f"fidelity.toml of {name}: name {missing} in the `settings` of the part that they control"
    assert len({part.part for part in method.parts.values()}) == len(method.parts)
