"""HTML made smaller before it is parsed: what nobody sees on a page goes first, by scanning, in linear time."""

import re

MAX_MARKUP = 4_000_000
"""Characters of HTML that are parsed; a parsed page takes about a hundred times as many bytes."""

_SILENT = re.compile(r"<!--|<(script|style|template|noscript|svg|iframe)\b", re.IGNORECASE)
_CLOSING = {
    name: re.compile(rf"</{name}\b", re.IGNORECASE)
    for name in ("script", "style", "template", "noscript", "svg", "iframe")
}
_HIDES_THE_REST = ("script", "style")
_INLINE_DATA = re.compile(r"data:[\w.+-]{1,80}/[\w.+-]{1,80};base64,[A-Za-z0-9+/=]+")


def visible_markup(html: str) -> tuple[str, list[str]]:
    """HTML without scripts, styles, comments and inlined data, at most MAX_MARKUP characters; says what was cut."""
    seen = _INLINE_DATA.sub("", "".join(_parts(html)))
    if len(seen) <= MAX_MARKUP:
        return seen, []
    # Not within a tag, or its rest would be read as text.
    end = seen.rfind("<", 0, MAX_MARKUP)
    kept = seen[: end if end > 0 else MAX_MARKUP]
    return kept, [f"only the first {len(kept):,} of {len(seen):,} characters of HTML were read"]


def _parts(html: str) -> list[str]:
    parts: list[str] = []
    unclosed: set[str] = set()
    start = 0
    while opening := _SILENT.search(html, start):
        parts.append(html[start : opening.start()])
        start = _end_of(html, opening, unclosed)
    return [*parts, html[start:]]


def _end_of(html: str, opening: re.Match[str], unclosed: set[str]) -> int:
    """Where what was opened ends; as in a browser, a script or comment that is never closed runs to the end.

    `unclosed` remembers what is closed nowhere behind, or each opening would look through all of the rest.
    """
    name = (opening[1] or "").lower()
    if not name:
        end = html.find("-->", opening.end())
        return end + 3 if end >= 0 else len(html)
    closing = None if name in unclosed else _CLOSING[name].search(html, opening.end())
    if closing is None:
        unclosed.add(name)
        return len(html) if name in _HIDES_THE_REST else opening.end()
    end = html.find(">", closing.end())
    return end + 1 if end >= 0 else len(html)
