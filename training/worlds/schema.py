"""Tables of the worlds: kinds of entities, relations with their wordings, page styles and frames of questions."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

Split = Literal["train", "test"]
Words = Mapping[str, Sequence[str]]


class Kind(BaseModel, frozen=True):
    """A kind of entity: its words, its names, and the range of its first year; `fill` are sentences without facts."""

    noun: str
    plural: str
    count: tuple[int, int]
    names: tuple[str, ...]
    fill: tuple[str, ...]
    year: tuple[int, int] | None = None
    article: bool = False
    be: str = "is"


class Relation(BaseModel, frozen=True):
    """A relation between entities of kinds `subjects` and `object`, or a value if `object` is empty.

    `words` are the wordings of one split; relations.toml explains them and the other fields.
    """

    name: str
    subjects: tuple[str, ...]
    words: Words
    object: str = ""
    value: str = ""
    number: tuple[int, int] | None = None
    unit: str = ""
    word: str = ""
    within: tuple[str, ...] = ()
    share: float = 0.85
    per_object: tuple[int, int] | None = None
    gap: tuple[int, int] | None = None
    symmetric: bool = False
    timeless: bool = False
    label: tuple[str, str] = ("", "")
    more: str = ""
    less: str = ""


class Style(BaseModel, frozen=True):
    """A page style; `words` has its `lead`, `link` and `end`."""

    name: str
    weight: int
    words: Words = {}
    kinds: tuple[str, ...] = ()
    form: str = "prose"


@dataclass(frozen=True, kw_only=True, slots=True)
class Schema:
    """All that one split may use."""

    split: Split
    kinds: Mapping[str, Kind]
    relations: Mapping[str, Relation]
    styles: Sequence[Style]
    intro: Sequence[str]
    frames: Words
    name_styles: Sequence[Words]
    title_words: Words
    lists: Words


@cache
def load(split: Split) -> Schema:
    """Return the tables of a split: its own kinds, relations, styles and wordings."""
    frames, names = _table("frames"), _table("names")
    kinds = {name: each for name, each in _table("kinds").items() if each.get("split", split) == split}
    styles = {name: each for name, each in frames["styles"].items() if each.get("split", split) == split}
    fill = "fill" if split == "train" else "test_fill"
    worded = {name: _relation(name, each, split) for name, each in _table("relations").items()}
    return Schema(
        split=split,
        kinds={name: Kind(**{**each, "fill": each[fill]}) for name, each in kinds.items()},
        relations={name: each for name, each in worded.items() if "ask" in each.words},
        styles=[Style(**{**each, "name": name, "words": _own(each, split)}) for name, each in styles.items()],
        intro=frames["intro"][split],
        frames=frames[split],
        name_styles=names[split],
        title_words=names["words"][split],
        lists=names["lists"],
    )


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


def _relation(name: str, row: Mapping[str, Any], split: Split) -> Relation:
    own = row if split == "train" else row.get("test", {})
    about = {"name": name, "subjects": row["from"], "object": row.get("to", ""), "words": _own(row, split)}
    return Relation(**{**row, **about, **{key: own[key] for key in ("more", "less") if key in own}})


def _own(row: Mapping[str, Any], split: Split) -> dict[str, list[str]]:
    """Return the wordings of a split, which are the lists of texts in a row."""
    own = row if split == "train" else row.get("test", {})
    lists = {key: each for key, each in own.items() if isinstance(each, list) and isinstance(each[0], str)}
    return {key: each for key, each in lists.items() if key not in ("from", "within", "label", "kinds")}
