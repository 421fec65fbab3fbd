"""Check that the core imports no part of `parts.toml`, and that no part imports one that it does not list.

Usage: python -m benchmarks.parts > FILE && lint-imports --config FILE
"""

import ast
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("agents", "graphs", "tools", "studio", "prompts", "src")
LAYERS = ("studio", "graphs", "agents", "tools")


@dataclass(frozen=True, kw_only=True, slots=True)
class Part:
    """A table of `parts.toml`."""

    does: str
    without: str
    modules: tuple[str, ...]
    budget: int
    entry: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """An import of a module of sleuth; `is_lazy` if it is in a function."""

    line: int
    module: str
    is_lazy: bool


def parts() -> dict[str, Part]:
    """Return the parts by name."""
    tables = tomllib.loads((ROOT / "parts.toml").read_text())
    return {name: Part(**table) for name, table in tables.items()}


def sources() -> dict[str, Path]:
    """Return the product's modules by their name below `sleuth`, as git lists them."""
    listed = subprocess.run(["git", "ls-files", "-z", *PRODUCT], cwd=ROOT, capture_output=True, check=True, text=True)
    paths = [Path(name) for name in listed.stdout.split("\0") if name.endswith(".py")]
    return {
        ".".join(path.with_suffix("").parts).removesuffix(".__init__"): ROOT / path
        for path in paths
        if (ROOT / path).is_file() and not (ROOT / path).is_symlink()
    }


def part_of(module: str) -> str:
    """Return the name of a module's part; empty for the core."""
    return next((name for name, part in _parts().items() if _is_in(module, part)), "")


@cache
def _parts() -> Mapping[str, Part]:
    return parts()


def _is_in(module: str, part: Part) -> bool:
    return any(f"{module}.".startswith(f"{prefix}.") for prefix in part.modules)


def imports_of(source: str, modules: Mapping[str, Path]) -> Iterator[Import]:
    """Yield the imports of a module that happen at run time."""
    waiting: list[tuple[ast.AST, bool]] = [(ast.parse(source), False)]
    while waiting:
        node, is_lazy = waiting.pop()
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sleuth."):
            base = str(node.module).removeprefix("sleuth.")
            for name in {f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in node.names}:
                yield Import(line=node.lineno, module=name, is_lazy=is_lazy)
        elif isinstance(node, ast.Import):
            names = (alias.name for alias in node.names if alias.name.startswith("sleuth."))
            yield from (
                Import(line=node.lineno, module=name.removeprefix("sleuth."), is_lazy=is_lazy) for name in names
            )
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            inside = is_lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def broken_imports() -> list[str]:
    """Return the imports of a part in the core: at a module's head, or in a function of a module that is no entry."""
    modules = sources()
    return [
        f"{path.relative_to(ROOT)}:{found.line} imports {part}{' in a function' if found.is_lazy else ''}"
        for module, path in modules.items()
        if not part_of(module)
        for found in sorted(imports_of(path.read_text(), modules), key=lambda found: found.line)
        if (part := part_of(found.module)) and not (found.is_lazy and module in _parts()[part].entry)
    ]


def contracts() -> Iterator[str]:
    """Yield the configuration of import-linter: layers, core and parts."""
    modules = sources()
    members: dict[str, list[str]] = {name: [] for name in ("", *_parts())}
    for module in modules:
        if not module.startswith("src."):
            members[part_of(module)].append(f"sleuth.{module}")
    yield "[importlinter]\nroot_package = sleuth\nexclude_type_checking_imports = True\n"
    yield from _contract("layers", "Imports point down", layers=[f"sleuth.{layer}" for layer in LAYERS])
    entries = [
        f"sleuth.{entry} -> {module}"
        for name, part in _parts().items()
        for entry in part.entry
        for module in members[name]
    ]
    inside = [module for name in _parts() for module in members[name]]
    yield from _forbidden("The core imports no part", members[""], inside, entries)
    for name, part in _parts().items():
        others = [module for other in _parts() if other not in (name, *part.uses) for module in members[other]]
        yield from _forbidden(
            f"{name} imports only the core, {', '.join(part.uses) or 'no part'}", members[name], others
        )


def _forbidden(title: str, sources: list[str], forbidden: list[str], ignored: list[str] | None = None) -> Iterator[str]:
    lists = {"source_modules": sources, "forbidden_modules": forbidden, "ignore_imports": ignored or []}
    yield from _contract("forbidden", title, **lists)
    yield "as_packages = False\nallow_indirect_imports = True\nunmatched_ignore_imports_alerting = none\n"


def _contract(kind: str, title: str, **lists: list[str]) -> Iterator[str]:
    yield f"\n[importlinter:contract:{title}]\nname = {title}\ntype = {kind}"
    for name, values in lists.items():
        yield "\n    ".join([f"{name} =", *values])


if __name__ == "__main__":
    print("\n".join(contracts()))
