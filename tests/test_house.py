"""The rules of the house (AGENTS.md), kept by reading the sources."""

import ast
import sys
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

import pytest

import sleuth
from sleuth.graphs import chat, ingest
from sleuth.graphs.registry import METHODS

ROOT = Path(__file__).parents[1]
STOREYS = ("prompts", "tools", "agents", "graphs", "studio")
"""From the ground up; what stands higher may import what stands lower. Prompts hold no code beyond their loader."""

MODULES = [
    path for storey in STOREYS for path in sorted((ROOT / storey).rglob("*.py")) if "node_modules" not in path.parts
]
MAX_LINES, MAX_BODY, PROMPT_SIZED = 400, 40, 300
TOO_LONG: set[str] = set()
"""Modules and functions that are longer; may only shrink."""

HEAVY = {
    "torch",
    "torch_geometric",
    "transformers",
    "sentence_transformers",
    "chromadb",
    "vllm",
    "langchain_community",
    "sklearn",
    "scipy",
    "matplotlib",
    "lightgbm",
    "openvino",
    "trafilatura",
}
"""Take seconds to import, or import what does."""


def modules(storey: str) -> list[Path]:
    return [path for path in MODULES if path.relative_to(ROOT).parts[0] == storey]


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, at its head or in a function."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name(path)} imports relatively"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_sources_were_found() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(STOREYS)


@pytest.mark.parametrize("storey", STOREYS)
def test_imports_only_point_down_and_never_to_a_bare_name(storey: str) -> None:
    for path in modules(storey):
        own = STOREYS.index(path.relative_to(ROOT).parts[0])
        for module in imported(path):
            first, *rest = module.split(".")
            assert first not in STOREYS, f"import sleuth.{module}, not {module}"
            if first == "sleuth" and rest[0] in STOREYS:
                assert STOREYS.index(rest[0]) <= own, f"{name(path)} imports {module}"


@pytest.mark.parametrize("storey", STOREYS)
def test_modules_and_functions_stay_short(storey: str) -> None:
    for path in modules(storey):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        functions = [node for node in ast.walk(tree(path)) if isinstance(node, Function)]
        bodies = {f"{name(path)}:{node.name}": length(node) for node in functions}
        too_long = {where for where, size in bodies.items() if size > MAX_BODY}
        too_long |= {name(path)} if lines > MAX_LINES else set()
        listed = {where for where in TOO_LONG if where.split(":")[0] == name(path)}
        assert too_long == listed, f"{name(path)}: too long, or no longer too long"


Function = ast.FunctionDef | ast.AsyncFunctionDef


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


@pytest.mark.parametrize("storey", STOREYS)
def test_prompts_are_written_in_prompts_only(storey: str) -> None:
    for path in modules(storey):
        found = tree(path)
        statements = {id(node.value) for node in ast.walk(found) if isinstance(node, ast.Expr)}
        for node in ast.walk(found):
            if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in statements:
                assert len(text_of(node)) <= PROMPT_SIZED, f"{name(path)}:{node.lineno} holds a text of a prompt's size"


def text_of(node: ast.Constant | ast.JoinedStr) -> str:
    """The literal text of a string; what an f-string puts in does not count."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str))


# The graphs

GRAPHS = {name: method.graph for name, method in METHODS.items()} | {"ingest": ingest.graph, "chat": chat.graph}
STATES: dict[str, tuple[type, type]] = {
    name: (method.state, vars(sys.modules[method.state.__module__])["Update"]) for name, method in METHODS.items()
} | {"ingest": (ingest.IngestState, ingest.IngestUpdate), "chat": (chat.State, chat.Update)}


@pytest.mark.parametrize(("state", "update"), STATES.values(), ids=STATES)
def test_nodes_update_only_fields_of_the_state(state: type, update: type) -> None:
    kept = {field.name for field in fields(state)}
    assert get_type_hints(update).keys() <= kept
    never_changed = {"question", "schema_version", "roots", "worklist"}
    assert kept - get_type_hints(update).keys() <= never_changed


@pytest.mark.parametrize("name", GRAPHS)
def test_a_node_has_its_function_s_name_and_returns_the_update(name: str) -> None:
    _, update = STATES[name]
    for node, spec in GRAPHS[name]().nodes.items():
        function: Any = spec.runnable.afunc  # type: ignore[attr-defined]
        assert function.__name__ == node
        assert get_type_hints(function)["return"] is update
        assert function.__doc__


@pytest.mark.parametrize("name", GRAPHS)
def test_routers_say_where_they_lead(name: str) -> None:
    for branches in GRAPHS[name]().branches.values():
        for branch in branches.values():
            router: Any = branch.path.func  # type: ignore[attr-defined]
            hint = get_type_hints(router)["return"]
            chosen = hint.__args__[0] if get_origin(hint) is list else hint
            assert get_origin(chosen) is Literal


def states_written() -> list[ast.ClassDef]:
    """The classes of every state, with what they inherit."""
    paths = sorted((ROOT / "graphs").glob("*.py"))
    classes = [node for path in paths for node in tree(path).body if isinstance(node, ast.ClassDef)]
    wanted = {base.__name__ for state, _ in STATES.values() for base in state.__mro__} - {"object"}
    return [node for node in classes if node.name in wanted]


@pytest.mark.parametrize("state", states_written(), ids=lambda state: state.name)
def test_every_field_of_a_state_is_explained(state: ast.ClassDef) -> None:
    for at, node in enumerate(state.body):
        if isinstance(node, ast.AnnAssign):
            after = state.body[at + 1] if at + 1 < len(state.body) else None
            explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert explained, f"{state.name}.{ast.unparse(node.target)} has no line that explains it"


# The package


@pytest.mark.parametrize("storey", STOREYS)
def test_what_takes_seconds_to_import_is_imported_where_it_is_needed(storey: str) -> None:
    for path in modules(storey):
        for node in tree(path).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                taken = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
                assert not HEAVY & {module.split(".")[0] for module in taken}, f"{name(path)}:{node.lineno}"


def test_the_public_names_are_all_there() -> None:
    assert sorted(sleuth.__all__) == sorted(set(sleuth.__all__))
    assert all(hasattr(sleuth, name) for name in sleuth.__all__)
