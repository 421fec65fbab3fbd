"""Every schema that guides a reply compiles to a grammar, as vLLM does it."""

import json
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest

from sleuth.agents import roles
from sleuth.agents.role import Role

MODULES = [import_module(f"{roles.__name__}.{module.name}") for module in iter_modules(roles.__path__)]
GUIDED: dict[str, Role[Any, Any]] = {
    role.prompt: role
    for module in MODULES
    for role in vars(module).values()
    if isinstance(role, Role) and role.schema() is not None
}


@pytest.mark.parametrize("prompt", GUIDED)
def test_schema_of_a_role_compiles_to_a_grammar(prompt: str) -> None:
    xgrammar = pytest.importorskip("xgrammar", reason="the embedded model server is not installed")
    grammar = xgrammar.Grammar.from_json_schema(json.dumps(GUIDED[prompt].schema()))
    assert "root ::=" in str(grammar)
