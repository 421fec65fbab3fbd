from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import walk_packages

import pytest

import sleuth.agents.roles
from sleuth import prompts
from sleuth.agents.role import NAMES, Role

SHARED = {"shared/repair", "shared/schema", "shared/choices"}
"""Asked for by the model caller and the client, whatever the role."""


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


def test_every_file_is_used_by_exactly_one_role_and_every_role_has_its_file() -> None:
    assert sorted([role.prompt for role in roles().values()] + [*SHARED]) == sorted(names())


@pytest.mark.parametrize("role", roles().values(), ids=lambda role: role.prompt)
def test_a_prompt_lies_in_the_folder_of_its_role(role: Role) -> None:
    assert role.prompt.startswith(f"{role.name}/")


def test_every_role_can_be_named_in_the_settings() -> None:
    assert {role.name for role in roles().values()} == set(NAMES)


def test_a_missing_or_unused_value_fails() -> None:
    prompt = prompts.load("drafter/draft")
    assert prompt.variables() == {"sources", "question"}
    with pytest.raises(ValueError, match=r"missing values \['sources'\], values that it does not use \['source'\]"):
        prompt.render(source="", question="")


def test_a_value_is_put_in_as_it_is() -> None:
    _, user = prompts.load("drafter/draft").render(sources="$question {} ${x}", question="q")
    assert user == "$question {} ${x}\n\nQuestion: q"


def test_there_is_no_prompt_of_another_name() -> None:
    with pytest.raises(FileNotFoundError):
        prompts.load("drafter/drift")


def test_the_version_follows_the_text() -> None:
    versions = {prompts.load(name).version for name in names()}
    assert len(versions) == len(names())
