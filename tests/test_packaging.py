"""The package's metadata against its sources."""

import ast
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from sleuth.studio.model_server.install import locked_pins
from sleuth.tools.errors import DISTRIBUTION, EXTRA_OF

ROOT = Path(__file__).parents[1]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OPTIONAL: dict[str, list[str]] = PROJECT["optional-dependencies"]
FOLDERS = ("prompts", "tools", "agents", "graphs", "studio", "training")

EXTRAS = {
    "agents/graph_encoder.py": ("graph", "torch"),
    "graphs": ("postgres",),
    "tools/ingestion": ("sync",),
    "studio/cli/commands/serve.py": ("serve",),
    "studio/langgraph_dev": ("studio", "serve"),
    "studio/mcp.py": ("mcp",),
    "studio/model_server": ("torch", "vllm"),  # installed by `sleuth model install`
    "studio/server": ("serve", "postgres"),
    "training": ("train", "torch"),
    "tools/ingestion/ray_cluster.py": ("ray",),
    "tools/documents/community_loaders.py": ("loaders",),
    "tools/documents/formats": ("office",),
    "tools/documents/formats/pdf_format.py": ("ocr",),
    "tools/search/vectors/embedder.py": ("torch",),
    "tools/tracing/tracers.py": ("otel",),
}
"""The extras whose packages a file or folder may import; all others import only what is always installed."""

COMES_WITH = {
    "aiosqlite": "langgraph-checkpoint-sqlite",
    "anyio": "langsmith",
    "httpx": "chromadb",
    "opentelemetry-api": "chromadb",
    "ormsgpack": "langgraph-checkpoint",
    "pydantic-core": "pydantic",
    "requests": "langsmith",
    "typing-extensions": "pydantic",
}
"""Packages that are imported and not declared: another one that is declared always installs them."""


def sources(folder: str, *suffixes: str) -> list[Path]:
    """The files of a folder with one of these suffixes, without what npm installs."""
    found = (path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in suffixes)
    return [path for path in found if "node_modules" not in path.parts]


def test_distribution_name_equals_the_one_in_error_messages() -> None:
    assert PROJECT["name"] == DISTRIBUTION


def test_install_commands_name_the_distribution_and_its_extras() -> None:
    folders = [path for folder in (*FOLDERS, "docs", "examples") for path in sources(folder, ".py", ".md")]
    for path in (*folders, *ROOT.glob("*.md")):
        text = path.read_text(encoding="utf-8").replace("{DISTRIBUTION}", DISTRIBUTION)
        for name, extras in re.findall(r"pip install '?(sleuth[\w-]*)(?:\[([\w,]+)\])?", text):
            assert name == DISTRIBUTION, path
            assert set(extras.split(",")) <= {"", *OPTIONAL}, path


def test_locked_versions_satisfy_the_declared_requirements() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    locked = locked_pins() | dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", lock, re.MULTILINE))
    for line in (*PROJECT["dependencies"], *(line for lines in OPTIONAL.values() for line in lines)):
        wanted = Requirement(line)
        if wanted.name not in (DISTRIBUTION, "vllm"):  # the lock has the build of vLLM for processors
            assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)]), line


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_import_of_a_folder_is_a_declared_dependency(folder: str) -> None:
    assert not undeclared(folder), "declare the packages in pyproject.toml, as dependencies or extras"


def test_table_of_extras_agrees_with_the_project() -> None:
    for module, name in EXTRA_OF.items():
        assert owned(module) & {canonicalize_name(Requirement(line).name) for line in OPTIONAL[name]}, module


def undeclared(folder: str) -> dict[str, set[str]]:
    """Return each import of a distribution that is not declared for its file, with the distributions that have it."""
    own = sys.stdlib_module_names | {"sleuth", "training", "_typeshed"}
    found = {}
    for path in sources(folder, ".py"):
        declared = declared_for(path.relative_to(ROOT).as_posix())
        foreign = {
            name for name in imports_of(ast.parse(path.read_text(encoding="utf-8"))) if name.split(".")[0] not in own
        }
        found |= {name: owned(name) for name in foreign if not owned(name) & declared}
    return found


def declared_for(path: str) -> set[str]:
    """Return the distributions that a file may import."""
    extras = [extra for prefix, those in EXTRAS.items() if path.startswith(prefix) for extra in those]
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in OPTIONAL[extra])]
    names = {canonicalize_name(Requirement(line).name) for line in lines}
    return names | {name for name, other in COMES_WITH.items() if other in names}


@pytest.mark.parametrize("name", COMES_WITH)
def test_package_that_is_not_declared_comes_with_another(name: str) -> None:
    needed = [Requirement(line) for line in metadata.requires(COMES_WITH[name]) or []]
    assert name in {canonicalize_name(each.name) for each in needed if each.marker is None}


def test_extra_that_pip_before_23_3_does_not_install_is_declared() -> None:
    """That pip ignores an extra which the project spells in another way: `html_clean` for `html-clean`."""
    declared = {(each.name, extra) for each in map(Requirement, PROJECT["dependencies"]) for extra in each.extras}
    ignored = set(ignored_extras(DISTRIBUTION))
    assert ignored <= declared
    assert ("lxml", "html-clean") in declared


def ignored_extras(name: str, visited: set[str] | None = None) -> Iterator[tuple[str, str]]:
    """Yield the extras that the installed requirements of a distribution spell in another way than their project."""
    visited = visited or set()
    for line in map(Requirement, metadata.requires(name) or []):
        if line.marker and not line.marker.evaluate({"extra": ""}):
            continue
        provided = metadata.metadata(line.name).get_all("Provides-Extra") or []
        yield from ((line.name, canonicalize_name(extra)) for extra in line.extras if extra not in provided)
        if line.name not in visited:
            visited.add(line.name)
            yield from ignored_extras(line.name, visited)


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Yield everything that is imported; a name that is imported from a module may be a module too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{each.name}" for each in node.names)


def owned(name: str) -> set[str]:
    """Return the distributions that have a name, or else the innermost module around it."""
    while name and name not in owners():
        name = name.rpartition(".")[0]
    return owners().get(name, set())


@cache
def owners() -> dict[str, set[str]]:
    """Return the distributions that have each module; a package shared by several is not a module."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in metadata.distributions():
        name = canonicalize_name(each.metadata["Name"])
        for line in (each.read_text("RECORD") or "").splitlines():
            path = line.split(",")[0]
            if path.endswith((".py", ".so", ".pyd")):
                folder, _, file = path.rpartition("/")
                module = f"{folder}/{file.split('.')[0]}".removesuffix("/__init__")
                found[module.strip("/").replace("/", ".")].add(name)
    return dict(found)
