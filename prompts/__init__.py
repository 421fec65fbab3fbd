"""Prompts as Markdown files, one per model call: `prompts/<group>/<role>/<name>.md`.

A prompt's name is `<role>/<name>`; the group only sorts the roles into folders.

A file contains an optional system part and a user part, divided by a line with three dashes. `$name` is replaced by a
value; the names in a file and the values given must be the same, or `Prompt.render` fails: no typo reaches a model.
`$briefly` is the rule of short answers (`shared/briefly.md`): loading inserts it.
"""

import asyncio
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from string import Template


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt file: its name, its text in two parts, and a hash of the text that names its version."""

    name: str
    system: str
    user: str
    version: str

    def variables(self) -> frozenset[str]:
        """Return the names of the values that the file expects."""
        return frozenset(Template(f"{self.system}\n{self.user}").get_identifiers())

    def render(self, **values: str) -> tuple[str, str]:
        """Return the system part and the user part with every value in place.

        Raises:
            ValueError: the values are not exactly those that the file expects.
        """
        wanted, given = self.variables(), frozenset(values)
        if wanted != given:
            missing, unused = sorted(wanted - given), sorted(given - wanted)
            raise ValueError(f"prompt {self.name}: missing values {missing}, values that it does not use {unused}")
        return Template(self.system).substitute(values).strip(), Template(self.user).substitute(values).strip()


@cache
def _all() -> dict[str, Prompt]:
    """Return all prompts by their names, read once."""
    found, folder = {}, Path(__file__).parent
    briefly = (folder / "shared" / "briefly.md").read_text(encoding="utf-8").strip()
    for file in sorted(folder.rglob("*.md")):
        name, text = f"{file.parent.name}/{file.stem}", file.read_text(encoding="utf-8").replace("$briefly", briefly)
        system, _, user = text.rpartition("\n---\n")
        found[name] = Prompt(name=name, system=system, user=user, version=sha256(text.encode()).hexdigest()[:12])
    return found


def load(name: str) -> Prompt:
    """Return the prompt `<role>/<name>`.

    Raises:
        FileNotFoundError: no group has such a file.
    """
    if name not in _all():
        raise FileNotFoundError(f"There is no prompt {name}.")
    return _all()[name]


async def read() -> None:
    """Read prompts in a thread: `load` does not block the event loop later, and concurrent asks keep their order."""
    if not _all.cache_info().currsize:
        await asyncio.to_thread(_all)


async def versions() -> dict[str, str]:
    """Return the version of every prompt by its name."""
    await read()
    return {name: prompt.version for name, prompt in _all().items()}


def names() -> list[str]:
    """Return the names of all prompts, sorted."""
    return sorted(_all())
