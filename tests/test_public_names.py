"""The public names of the package."""

import ast
from pathlib import Path

import sleuth


def test_public_names_are_those_that_type_checkers_see() -> None:
    module = ast.parse(Path(str(sleuth.__file__)).read_text(encoding="utf-8"))
    (typed,) = [node for node in module.body if isinstance(node, ast.If)]
    imports = [node for node in typed.body if isinstance(node, ast.ImportFrom)]
    seen = {each.asname: f"{node.module}.{each.name}" for node in imports for each in node.names}
    assert seen == sleuth._PUBLIC
    assert all(getattr(sleuth, name) for name in sleuth.__all__)
    assert dir(sleuth) == sleuth.__all__ == sorted(seen)
