from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import walk_packages

import pytest

import sleuth.agents.roles
from sleuth import prompts
from sleuth.agents.role import NAMES, Role

SHARED = {"shared/repair", "shared/schema", "shared/choices", "shared/language", "shared/briefly"}
"""Prompts of the model caller and the client for all roles, and the rule of short answers."""


def names() -> set[str]:
    root = Path(str(files("sleuth.prompts")))
    return {"/".join(file.with_suffix("").parts[-2:]) for file in root.rglob("*.md")}


def roles() -> dict[str, Role]:
    modules = (
        import_module(found.name)
        for found in walk_packages(sleuth.agents.roles.__path__, "sleuth.agents.roles.")
        if not found.ispkg
    )
    found = [(name, value) for module in modules for name, value in vars(module).items()]
    return {name: value for name, value in found if isinstance(value, Role)}


def test_prompt_files_match_roles_one_to_one() -> None:
    assert sorted([role.prompt for role in roles().values()] + [*SHARED]) == sorted(names()), (
        "a file prompts/GROUP/ROLE/NAME.md has one Role(prompt='ROLE/NAME') in agents/roles/, and each role a file"
    )


def test_names_match_the_roles() -> None:
    assert {role.name for role in roles().values()} == set(NAMES), "NAMES in agents/role.py has each role once"


def test_render_inserts_values_verbatim_and_raises_if_one_is_missing() -> None:
    prompt = prompts.load("drafter/draft")
    assert prompt.variables() == {"sources", "question"}
    with pytest.raises(ValueError, match=r"missing values \['sources'\], values that it does not use \['source'\]"):
        prompt.render(source="", question="")
    _, user = prompt.render(sources="$question {} ${x}", question="q")
    assert user == "$question {} ${x}\n\nQuestion: q"


def test_rule_of_short_answers_is_in_one_file() -> None:
    rule = prompts.load("shared/briefly").user.strip()
    root = Path(str(files("sleuth.prompts")))
    copies = [file.name for file in root.rglob("*.md") if rule in file.read_text(encoding="utf-8")]
    assert copies == ["briefly.md"], f"write $briefly instead of {rule!r}"
    assert rule in prompts.load("reader/read").system


def test_load_of_unknown_prompt_raises() -> None:
    with pytest.raises(FileNotFoundError):
        prompts.load("drafter/drift")


def test_versions_of_prompts_differ() -> None:
    versions = {prompts.load(name).version for name in names()}
    assert len(versions) == len(names())
