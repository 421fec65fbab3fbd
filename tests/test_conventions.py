"""The conventions of AGENTS.md, checked by reading the sources."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any, Literal, get_origin, get_type_hints

import pytest

from sleuth.graphs.chat import graph as chat
from sleuth.graphs.registry import METHODS

ROOT = Path(__file__).parents[1]
LAYERS = ("prompts", "tools", "agents", "graphs", "studio")
"""From the bottom up: a layer imports itself and the layers before it. Prompts contain no code but their loader."""
FOLDERS = (*LAYERS, "training")
"""`training` is outside the package: it imports the layers, and none of them imports it."""

MODULES = [
    path for layer in FOLDERS for path in sorted((ROOT / layer).rglob("*.py")) if "node_modules" not in path.parts
]
MAX_BODY = 40


def modules(layer: str) -> list[Path]:
    return [path for path in MODULES if path.relative_to(ROOT).parts[0] == layer]


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
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_the_sources_were_found() -> None:
    assert {path.relative_to(ROOT).parts[0] for path in MODULES} == set(FOLDERS)


def test_test_modules_differ_in_their_names() -> None:
    names = Counter(path.name for path in (ROOT / "tests").rglob("test_*.py") if "node_modules" not in path.parts)
    twice = [name for name, count in names.items() if count > 1]
    assert not twice, f"Rename one of each: pytest imports test modules by their names alone: {', '.join(twice)}"


@pytest.mark.parametrize("layer", FOLDERS)
def test_imports_only_point_down(layer: str) -> None:
    for path in modules(layer):
        own = FOLDERS.index(path.relative_to(ROOT).parts[0])
        for module in imported(path):
            first, *rest = module.split(".")
            folder = rest[0] if first == "sleuth" else first
            if folder in FOLDERS:
                assert FOLDERS.index(folder) <= own, (
                    f"{name(path)} imports {module}, which is above it: move what it needs down, to {layer} or below"
                )


@pytest.mark.parametrize("layer", FOLDERS)
def test_functions_stay_short(layer: str) -> None:
    for path in modules(layer):
        functions = [node for node in ast.walk(tree(path)) if isinstance(node, Function)]
        long = [node.name for node in functions if length(node) > MAX_BODY]
        assert not long, f"{name(path)}: move parts of {', '.join(long)} into functions of at most {MAX_BODY} lines"


Function = ast.FunctionDef | ast.AsyncFunctionDef


def length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a body without its docstring."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]


# The folders


def dotted(path: Path) -> str:
    module = path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
    return module if module.split(".")[0] == "training" else f"sleuth.{module}"


BY_MODULE = {dotted(path): path for path in MODULES}
PACKAGES = [name for name, path in BY_MODULE.items() if path.name == "__init__.py"]


def imports_of(module: str) -> Iterator[str]:
    """The modules of sleuth and `training` that a module imports at run time."""
    found = tree(BY_MODULE[module])
    typing_only = {
        id(inner)
        for node in ast.walk(found)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(found):
        if isinstance(node, ast.ImportFrom) and id(node) not in typing_only and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in BY_MODULE else node.module


@pytest.mark.parametrize("package", PACKAGES)
def test_entries_of_a_package_do_not_import_each_other_in_a_circle(package: str) -> None:
    order: dict[str, set[str]] = {}
    for module in BY_MODULE:
        if module.startswith(f"{package}."):
            own, *others = [
                name.removeprefix(f"{package}.").split(".")[0]
                for name in (module, *imports_of(module))
                if name.startswith(f"{package}.")
            ]
            order.setdefault(own, set()).update({*others} - {own})
    try:
        list(TopologicalSorter(order).static_order())
    except CycleError as error:
        circle = " → ".join(error.args[1])
        pytest.fail(f"{package}: {circle} is a circle: move what two of them need into a third module")


MAY_IMPORT = {"chat": {"methods.par_rag"}}
"""Methods that use another method's package: the chat plans with PAR-RAG's planner."""


def method_of(module: str) -> str | None:
    """Return the method that a module belongs to, as `methods.auto`, `baselines.react` or `chat`."""
    match module.split(".")[2:]:
        case ["methods" | "baselines" as kind, name, *_]:
            return f"{kind}.{name}"
        case ["chat", *_]:
            return "chat"
    return None


def test_methods_import_other_methods_only_where_listed() -> None:
    found: dict[str, set[str]] = {}
    for module in (name for name in BY_MODULE if name.startswith("sleuth.graphs.")):
        own = method_of(module)
        for other in {method_of(name) for name in imports_of(module)} - {own, None} if own else ():
            found.setdefault(str(own), set()).add(str(other))
    assert found == MAY_IMPORT, (
        "move what two methods need into a function of graphs/evidence/ or graphs/core/; a method asks another one "
        "with `run_subrun`"
    )


# The graphs

GRAPHS = {name: method.graph for name, method in METHODS.items()} | {"chat": chat.graph}
STATES = [chat.State, *(method.state for method in METHODS.values())]


@pytest.mark.parametrize("name", GRAPHS)
def test_a_node_has_its_function_s_name_and_a_docstring(name: str) -> None:
    for node, spec in GRAPHS[name]().nodes.items():
        function: Any = spec.runnable.afunc  # type: ignore[attr-defined]
        assert function.__name__ == node, f"{name}: add the node as `new_graph(State, {function.__name__})`"
        assert function.__doc__, f"{name}: give the node {node} a docstring, which Studio shows"


@pytest.mark.parametrize("name", GRAPHS)
def test_routers_declare_their_targets(name: str) -> None:
    for branches in GRAPHS[name]().branches.values():
        for branch in branches.values():
            router: Any = branch.path.func  # type: ignore[attr-defined]
            hint = get_type_hints(router)["return"]
            chosen = hint.__args__[0] if get_origin(hint) is list else hint
            assert get_origin(chosen) is Literal, f'{name}: annotate {router.__name__} with -> Literal["node", "node"]'


@pytest.mark.parametrize("name", GRAPHS)
def test_edges_of_a_method_are_those_of_its_file(name: str) -> None:
    graph = GRAPHS[name]
    assert name == "chat" or graph.__qualname__ == "graph", "the registry returns METHOD as the method's file has it"
    for branches in graph().branches.values():
        for branch in branches.values():
            router: Any = branch.path.func  # type: ignore[attr-defined]
            assert "<locals>" not in router.__qualname__, (
                f"{name}: write {router.__name__} at the top level of a module"
            )


def states_written() -> list[ast.ClassDef]:
    """The classes of every state, with what they inherit."""
    paths = sorted((ROOT / "graphs").rglob("*.py"))
    classes = [node for path in paths for node in tree(path).body if isinstance(node, ast.ClassDef)]
    wanted = {base.__name__ for state in STATES for base in state.__mro__} - {"object"}
    return [node for node in classes if node.name in wanted]


@pytest.mark.parametrize("state", states_written(), ids=lambda state: state.name)
def test_every_field_of_a_state_is_explained(state: ast.ClassDef) -> None:
    for at, node in enumerate(state.body):
        if isinstance(node, ast.AnnAssign):
            after = state.body[at + 1] if at + 1 < len(state.body) else None
            explained = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            assert explained, f"{state.name}.{ast.unparse(node.target)} has no line that explains it"
