"""The code of docs/contributing/first-changes.md works with the present interfaces."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from sleuth.graphs.core.method import Method

PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "first-changes.md"


def test_baseline_of_the_guide_is_a_method(tmp_path: Path) -> None:
    code = re.findall(r'```python title="graphs/baselines/best_passage.py"\n(.*?)```', PAGE.read_text("utf-8"), re.S)
    file = tmp_path / "best_passage.py"
    file.write_text(code[0], encoding="utf-8")
    spec = spec_from_file_location("best_passage", file)
    assert spec and spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module.METHOD, Method)
    assert module.METHOD.nodes() == ["retrieve", "answer"]


def test_files_that_the_guide_opens_exist() -> None:
    root = PAGE.parents[2]
    named = re.findall(r"^\| \(?\d\)? \| `([^`]+)`", PAGE.read_text("utf-8"), re.MULTILINE)
    new = {"graphs/baselines/best_passage.py", "tests/graphs/baselines/test_best_passage.py"}
    assert {path for path in named if not (root / path).exists()} <= new
