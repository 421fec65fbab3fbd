"""The core imports no part of `parts.toml`, and parts import only what the table lists."""

from benchmarks import parts


def test_core_imports_no_part() -> None:
    assert parts.broken_imports() == []


def test_parts_import_only_the_parts_that_they_list() -> None:
    modules, tables = parts.sources(), parts.parts()
    used: dict[str, set[str]] = {name: set() for name in tables}
    for module, path in modules.items():
        if own := parts.part_of(module):
            used[own] |= {parts.part_of(found.module) for found in parts.imports_of(path.read_text(), modules)}
    assert {name: used[name] - {"", name} for name in tables} == {name: {*part.uses} for name, part in tables.items()}


def test_every_module_and_entry_of_the_table_exists() -> None:
    modules = parts.sources()
    for name, part in parts.parts().items():
        assert all(any(f"{module}.".startswith(f"{each}.") for module in modules) for each in part.modules), name
        assert all(not parts.part_of(entry) for entry in part.entry if entry in modules), name
        assert {*part.entry} <= modules.keys(), name
