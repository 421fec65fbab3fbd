"""What a package's code imports, and the distributions that what it asks for brings along."""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

TYPES_ONLY = {"_typeshed"}
"""Known to type checkers alone."""


def unreached(package: Path, requires: Iterable[str], extras: Iterable[str]) -> dict[str, set[str]]:
    """What a package imports of others and nothing it asks for brings along, with the distributions that have it."""
    owners, reached = _owners(), _reached(requires, {"", *extras})
    own = sys.stdlib_module_names | TYPES_ONLY | {package.name}
    found = {name for path in package.rglob("*.py") for name in _imported(path) if name.split(".")[0] not in own}
    owned = {name: _owned(name, owners) for name in found}
    return {name: by for name, by in owned.items() if not by & reached}


def _imported(path: Path) -> Iterator[str]:
    """Everything that a file imports, wherever it does so; what is imported from a module may be a module too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{each.name}" for each in node.names)


@cache
def _owners() -> dict[str, set[str]]:
    """The distributions that have each module; packages that several share a part of are no modules."""
    owners: dict[str, set[str]] = defaultdict(set)
    for each in metadata.distributions():
        name = canonicalize_name(each.metadata["Name"])
        for path in map(str, each.files or []):
            if path.endswith((".py", ".so", ".pyd")):
                folder, _, file = path.rpartition("/")
                module = f"{folder}/{file.split('.')[0]}".removesuffix("/__init__")
                owners[module.strip("/").replace("/", ".")].add(name)
    return owners


def _owned(name: str, owners: dict[str, set[str]]) -> set[str]:
    """Who has a name, or else the module that it is in."""
    while name and name not in owners:
        name = name.rpartition(".")[0]
    return owners[name] if name else set()


def _reached(requires: Iterable[str], extras: set[str]) -> set[str]:
    """The distributions that requirements bring along, as far as they are installed here."""
    reached: set[tuple[str, str]] = set()
    left = [found for line in requires for extra in extras for found in _brought(line, extra)]
    while left:
        name, extra = found = left.pop()
        if found not in reached:
            reached.add(found)
            left += [further for line in _requires(name) for further in _brought(line, extra)]
    return {name for name, _ in reached}


def _brought(line: str, extra: str) -> list[tuple[str, str]]:
    """The distribution that a requirement names, once for itself and once for each of its extras."""
    requirement = Requirement(line)
    if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
        return []
    return [(canonicalize_name(requirement.name), each) for each in ("", *requirement.extras)]


def _requires(name: str) -> list[str]:
    try:
        return metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []  # for another system
