"""Versions of one document: files with the same name but for a version, and with nearly the same text."""

import re
from collections.abc import Sequence
from pathlib import PurePath
from types import MappingProxyType
from typing import NamedTuple

LEAST_SHARED = 0.6
"""Least share of common word sequences in two versions. One word in ten may differ, or a third of the text."""
_COMPARED_CHARS = 200_000
_SEQUENCE = 3
_PART = re.compile(r"\d+|[^\W\d_]+")
# Characters of scripts without spaces count as words.
_WORD = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
_NUMBERED = frozenset({"v", "ver", "version", "rev", "revision", "r"})
_STAGES = MappingProxyType(
    {"old": -1, "alt": -1, "draft": -1, "entwurf": -1, "borrador": -1, "final": 1, "latest": 1, "endfassung": 1}
)
"""Words for a stage before (-1) or after (1) all numbered versions."""


class VersionedName(NamedTuple):
    """A file's name without its version, and the version: its stage, then its numbers."""

    base: tuple[str, ...]
    stage: int
    numbers: tuple[int, ...]


def parse_name(path: str) -> VersionedName:
    """Return the parts of a file's name; folder, case and suffix do not count.

    `Lease (final).pdf` is the version (1, ()) of `lease`, `lease_v2.1.docx` the version (0, (2, 1)).
    """
    parts = _PART.findall(PurePath(path).stem.casefold())
    numbers = tuple(int(part) for part in parts if part.isdecimal())
    words = tuple(part for part in parts if not part.isdecimal())
    stages = [_STAGES[word] for word in words if word in _STAGES]
    base = tuple(word for word in words if word not in _STAGES and word not in _NUMBERED)
    return VersionedName(base, stages[-1] if stages else 0, numbers)


def shared_text(first: str, second: str) -> float:
    """Return the share of word sequences that two texts have in common, from 0 to 1 (Jaccard index)."""
    one, other = _sequences(first), _sequences(second)
    return len(one & other) / (len(one | other) or 1)


def _sequences(text: str) -> set[int]:
    words: Sequence[str] = _WORD.findall(text[:_COMPARED_CHARS].casefold())
    last = max(1, len(words) - _SEQUENCE + 1)
    return {hash(tuple(words[at : at + _SEQUENCE])) for at in range(last)}
