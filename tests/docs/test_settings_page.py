"""The page of all settings, which is generated."""

import importlib.util
from pathlib import Path

from sleuth.tools.settings import Settings

HOOKS = Path(__file__).parents[2] / "docs" / "hooks.py"


def test_page_has_each_setting_with_an_example() -> None:
    spec = importlib.util.spec_from_file_location("hooks", HOOKS)
    assert spec and spec.loader
    hooks = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hooks)
    page = hooks.settings()
    assert all(f"`SLEUTH_{name.upper()}`" in page and f"{name} = " in page for name in Settings.model_fields)
