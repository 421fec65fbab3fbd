"""Declaration of how a method follows its paper, part by part."""

from dataclasses import dataclass
from typing import Literal

PartStatus = Literal["as published", "our reading", "deviates", "not implemented"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPart:
    """One part of a method's paper, and what sleuth does instead or in the same way under `profile=paper`.

    `part` describes it in a few words, `source` names the section, equation or table. `our reading` is an
    interpretation where the paper leaves something open; `note` has it, and for `deviates` and `not implemented`
    what differs and why. `code` has the places that implement it, as dotted names below the package `sleuth` or in
    `training`, and `settings` the names of the settings that control it.
    """

    part: str
    source: str
    status: PartStatus
    code: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    note: str = ""
