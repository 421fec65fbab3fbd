"""Declaration of how a method follows its paper, part by part: the tables of a `fidelity.toml` next to its graph."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel

from sleuth.tools.data_files import read_toml

PartStatus = Literal["as published", "our reading", "deviates", "not implemented"]


class PaperPart(BaseModel, frozen=True, extra="forbid"):
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


@cache
def read_parts(file: Path) -> Mapping[str, PaperPart]:
    """Return the parts of a method's paper by their keys, followed by those that all published methods share.

    The shared parts are in a file of the same name in the folder above.
    """
    shared = file.parents[1] / file.name
    return read_toml(file, dict[str, PaperPart]) | read_toml(shared, dict[str, PaperPart])
