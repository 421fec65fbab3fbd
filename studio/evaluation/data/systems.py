"""Systems to compare: methods with settings, each under a profile."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sleuth.graphs.registry import configure, method
from sleuth.tools.errors import UnknownName, UsageError
from sleuth.tools.settings import Profile


@dataclass(frozen=True, kw_only=True, slots=True)
class System:
    """One line of every table."""

    name: str
    method: str
    profile: Profile = "default"
    values: dict[str, Any] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return the system with every setting as it holds, defaults too."""
        settings = configure(method(self.method), self.values, self.profile).model_dump(mode="json")
        return {**asdict(self), "settings": settings}


def systems(
    methods: Sequence[str],
    *,
    ablations: Sequence[str] = (),
    ladders: Sequence[str] = (),
    profiles: Sequence[Profile] = ("default",),
    values: Mapping[str, str] | None = None,
) -> list[System]:
    """Return the systems in the order of the methods: each in each profile, its ablations and the stages of its ladder.

    Args:
        methods: names; those of `ablations` and `ladders` are taken in where they are missing.
        ablations: the methods whose parts are switched off, one by one.
        ladders: the methods that are run as far as they were built, step by step.
        profiles: for each of them a line.
        values: settings for every method that has them; `METHOD.KEY` for one method alone.

    Raises:
        UnknownName: no such method, or no method has such a setting.
        UsageError: a value that a setting cannot have, or a ladder that a method has not.
    """
    made: list[System] = []
    chosen = list(dict.fromkeys([*methods, *ablations, *ladders]))
    given = {name: _own(name, values or {}) for name in chosen}
    _require_used(values or {}, chosen)
    for name in chosen:
        for profile in profiles:
            suffix = "" if profile == "default" else f" {profile}"
            made.append(System(name=f"{name}{suffix}", method=name, profile=profile, values=given[name]))
            for part in method(name).ablations() if name in ablations else ():
                without = {**given[name], part: False}
                made.append(System(name=f"{name}{suffix} without {part}", method=name, profile=profile, values=without))
            for rung in _rungs(name) if name in ladders else ():
                values_there = {**given[name], "rung": rung}
                made.append(
                    System(name=f"{name}{suffix} up to {rung}", method=name, profile=profile, values=values_there)
                )
    for system in made:
        configure(method(system.method), system.values, system.profile)
    return made


def _rungs(name: str) -> list[str]:
    if not (rungs := method(name).rungs()):
        raise UsageError(f"{name} has no ladder: only methods with a setting `rung` have one.")
    return rungs


def _own(name: str, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values that go to a method: those with its name before them win."""
    fields = method(name).settings.model_fields
    general = {key: value for key, value in values.items() if key in fields}
    return general | {
        key.partition(".")[2]: value for key, value in values.items() if key.partition(".")[0] == name and "." in key
    }


def _require_used(values: Mapping[str, str], methods: Sequence[str]) -> None:
    known = sorted({key for name in methods for key in method(name).settings.model_fields})
    for key in values:
        owner, dot, _ = key.partition(".")
        if dot and owner not in methods:
            raise UsageError(f"--set {key}: {owner} is not among the methods evaluated: {', '.join(methods)}.")
        if not dot and key not in known:
            raise UnknownName("setting of these methods", key, known, f"There are: {', '.join(known)}.")
