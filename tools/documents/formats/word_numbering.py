"""Numbers of the paragraphs of Word files, such as "4.2", which are not part of their text."""

import re
from functools import lru_cache
from typing import Any

_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"))
_UNITS = ((9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def find(element: Any, path: str) -> Any:  # noqa: ANN401 - of lxml, whose classes python-docx replaces for some tags
    """Return the result of an XPath with the prefixes of Word files."""
    return _compiled(path)(element)


@lru_cache(maxsize=256)
def _compiled(path: str) -> Any:  # noqa: ANN401
    from docx.oxml.ns import nsmap
    from lxml import etree

    return etree.XPath(path, namespaces=nsmap)


class Numbering:
    """Counters of the numbered lists of a file; paragraphs are to be counted in their order."""

    def __init__(self, numbering: Any, styles: Any) -> None:  # noqa: ANN401 - elements; of the first perhaps None
        self._styles = {find(style, "string(@w:styleId)"): style for style in find(styles, "./w:style")}
        self._lists: dict[str, tuple[str, dict[int, Any], dict[int, int]]] = {}
        self._counters: dict[str, dict[int, int]] = {}
        self._started: set[str] = set()
        lists = [] if numbering is None else find(numbering, "./w:num")
        for each in lists:
            key = find(each, "string(./w:abstractNumId/@w:val)")
            abstract = [
                one for one in find(numbering, "./w:abstractNum") if find(one, "string(@w:abstractNumId)") == key
            ]
            levels = [level for one in (*abstract, each) for level in find(one, "./w:lvl | ./w:lvlOverride/w:lvl")]
            starts = {
                _level(at.getparent()): int(_value(at.getparent(), "startOverride"))
                for at in find(each, "./*/w:startOverride")
            }
            self._lists[find(each, "string(@w:numId)")] = key, {_level(level): level for level in levels}, starts

    def number(self, paragraph: Any) -> str:  # noqa: ANN401
        """Return the number of a paragraph as it is shown; empty if it has none or a bullet."""
        name, level = self._place(paragraph)
        if name not in self._lists:
            return ""
        key, levels, starts = self._lists[name]
        counters = self._counters.setdefault(key, {})
        if level in starts and name not in self._started:
            counters[level] = starts[level] - 1
        self._started.add(name)
        counters[level] = counters.get(level, _start(levels.get(level)) - 1) + 1
        for deeper in [each for each in counters if each > level]:
            del counters[deeper]
        if level not in levels or _value(levels[level], "numFmt") in ("bullet", "none"):
            return ""

        def shown(found: re.Match[str]) -> str:
            at = int(found[1]) - 1
            return _format(counters.setdefault(at, _start(levels.get(at))), _value(levels.get(at), "numFmt"))

        return re.sub(r"%(\d)", shown, _value(levels[level], "lvlText")).strip()

    def _place(self, paragraph: Any) -> tuple[str, int]:  # noqa: ANN401
        """Return the list and the level of a paragraph, perhaps those of its style."""
        name, level = "", ""
        element, seen = paragraph, 0
        while element is not None and seen < 20 and not name:
            name = find(element, "string(./w:pPr/w:numPr/w:numId/@w:val)")
            level = level or find(element, "string(./w:pPr/w:numPr/w:ilvl/@w:val)")
            style = find(element, "string(./w:pPr/w:pStyle/@w:val | ./w:basedOn/@w:val)")
            element, seen = self._styles.get(style), seen + 1
        return name, int(level or 0)


def _value(element: Any, name: str) -> str:  # noqa: ANN401
    return str(find(element, f"string(./w:{name}/@w:val)")) if element is not None else ""


def _level(element: Any) -> int:  # noqa: ANN401
    return int(find(element, "string(@w:ilvl)"))


def _start(level: Any) -> int:  # noqa: ANN401
    return int(_value(level, "start") or 1)


def _format(number: int, kind: str) -> str:
    if kind.endswith("Letter"):
        text = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
    elif kind.endswith("Roman"):
        text = ""
        for value, letters in (*_ROMAN, *_UNITS):
            count, number = divmod(number, value)
            text += letters * count
    else:
        text = f"{number:02}" if kind == "decimalZero" else str(number)
    return text.upper() if kind.startswith("upper") else text
