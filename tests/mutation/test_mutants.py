"""The list of mutants is complete and fits the code. `make test-mutants` runs them."""

import pytest

from sleuth.graphs.registry import METHODS
from tests.mutation.run import HERE, ROOT, Mutant, load

MUTANTS = load()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda each: f"{each.package}: {each.old}"[:60])
def test_mutant_changes_a_file_and_names_its_tests(mutant: Mutant) -> None:
    mutant.apply((ROOT / mutant.file).read_text(encoding="utf-8"))
    assert mutant.tests
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)


@pytest.mark.parametrize("package", sorted(path.stem for path in HERE.glob("*.toml")))
def test_each_part_as_published_has_a_mutant(package: str) -> None:
    method = METHODS[package.replace("_", "-")]
    broken = {mutant.part for mutant in MUTANTS if mutant.package == package}
    parts = {key: each.status for key, each in method.parts.items()}
    assert broken - {""} <= parts.keys()
    assert {part for part, status in parts.items() if status == "as published"} <= broken


def test_text_that_occurs_twice_is_refused() -> None:
    mutant = Mutant(package="", file="x.py", old="a", new="b", tests=("tests",))
    assert mutant.apply("a = 1") == "b = 1"
    for text in ("", "a + a"):
        with pytest.raises(ValueError, match=r"in x\.py"):
            mutant.apply(text)
