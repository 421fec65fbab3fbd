"""Tables of the worlds: kinds of entities, relations with their wordings, page styles and frames of questions."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

Split = Literal["train", "test"]
Words = Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of entity: its words, its names, and the range of its first year; `fill` are sentences without facts."""

    noun: str
    plural: str
    count: tuple[int, int]
    names: tuple[str, ...]
    fill: tuple[str, ...]
    year: tuple[int, int] | None = None
    article: bool = False
    be: str = "is"


@dataclass(frozen=True, kw_only=True, slots=True)
class Relation:
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Style:
    """A page style; `words` has its `lead`, `link` and `end`."""

    name: str
    weight: int
    words: Words = field(default_factory=dict)
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
    relations = {name: _relation(name, each, split) for name, each in _table("relations").items()}
    styles = [each for each in frames["styles"].items() if each[1].get("split", split) == split]
    return Schema(
        split=split,
        kinds={name: _kind(each, split) for name, each in kinds.items()},
        relations={name: each for name, each in relations.items() if "ask" in each.words},
        styles=[_style(name, each, split) for name, each in styles],
        intro=frames["intro"][split],
        frames=frames[split],
        name_styles=names[split],
        title_words=names["words"][split],
        lists=names["lists"],
    )


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text(encoding="utf-8"))


def _kind(row: Mapping[str, Any], split: Split) -> Kind:
    fill = row["fill" if split == "train" else "test_fill"]
    return Kind(fill=tuple(fill), **{key: _fixed(row[key]) for key in row if key not in ("fill", "test_fill", "split")})


def _relation(name: str, row: Mapping[str, Any], split: Split) -> Relation:
    own = row if split == "train" else row.get("test", {})
    words = {key: each for key, each in own.items() if isinstance(each, list) and isinstance(each[0], str)}
    words = {key: each for key, each in words.items() if key not in ("from", "within", "label")}
    fields = {key: _fixed(each) for key, each in row.items() if key not in (*words, "from", "to", "test")}
    fields = {key: each for key, each in fields.items() if key in Relation.__dataclass_fields__}
    fields |= {key: own[key] for key in ("more", "less") if key in own}
    return Relation(name=name, subjects=tuple(row["from"]), object=row.get("to", ""), words=words, **fields)


def _style(name: str, row: Mapping[str, Any], split: Split) -> Style:
    own = row if split == "train" else row.get("test", {})
    words = {key: own[key] for key in ("lead", "link", "end") if key in own}
    return Style(
        name=name, weight=row["weight"], words=words, kinds=tuple(row.get("kinds", ())), form=row.get("form", "prose")
    )


def _fixed(value: Any) -> Any:  # noqa: ANN401 - any value of a table
    return tuple(value) if isinstance(value, list) else value
