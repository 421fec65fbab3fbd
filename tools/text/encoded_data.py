"""Recognition of data that is written as text: pictures in Base64, hexadecimal dumps, minified scripts."""

import re

LEFT_OUT = "…"
"""What is shown in place of encoded data."""
LONGEST_WORD = 16
"""Mean length of the parts of Base64 between slashes and hyphens is more; those of paths and names are shorter."""

_LETTER = r"[A-Za-z0-9+/_-]"
_LINE = f"(?>{_LETTER}{{40,}}={{0,2}})"
_WRAP = r"(?>(?:[\s>]|\\n){1,20})"
_DATA_URL = (
    r"data:[\w.+-]+/[\w.+-]+[^,\s\"'<>()]{0,200},(?:<svg\b(?:[^<]|<(?!/?svg))*+</svg>"
    rf"|(?=[^\s\"'<>()]{{64}})[^\s\"'<>()]++(?:\s*+{_LETTER}{{40,}}+)*+(?:\s+{_LETTER}*={{1,2}})?)"
)
_HEXADECIMAL = r"(?:0x|\\x)?(?:[0-9A-Fa-f]{8}|[0-9A-Fa-f]{4}|[0-9A-Fa-f]{2})(?![0-9A-Za-z])"
_END_OF_DUMP_LINE = r"[ \t]*[^\n]{1,20}\n(?=[0-9A-Fa-f]{4})[0-9A-Fa-f]+:?[ \t]+"
_ENCODED = re.compile(
    rf"^ {{0,3}}\[[^\]\n]+\]:[ \t]*<?(?P<definition>{_DATA_URL})>?[^\n]*\n?"
    rf"|(?P<url>{_DATA_URL})"
    rf"|(?<!{_LETTER})(?P<words>{_LETTER}{{200,}}+)={{0,2}}"
    rf"|(?<![^\s>\"'])(?P<lines>{_LINE}(?:{_WRAP}{_LINE}){{3,}}(?:{_WRAP}(?:{_LETTER}*={{1,2}}|{_LETTER}{{20,}}))?)"
    rf"|(?<![\w.-])(?P<dump>(?>{_HEXADECIMAL}(?:{_END_OF_DUMP_LINE}|[\s,:;]{{1,3}}+|(?=\\x))){{63,}}{_HEXADECIMAL})"
    r"|^begin [0-7]{3} [^\n]+\n(?P<uuencoded>(?:M[ -`]{60}\n)++)(?:[ -`]{1,61}\n){0,2}(?:end)?",
    re.MULTILINE,
)
_LONG_LINE = re.compile(r"^[^\n]{1000,}$", re.MULTILINE)


def without_encoded_data(text: str) -> str:
    """Return the text with LEFT_OUT in place of long encoded data and of minified scripts.

    The definition of a picture in Markdown is removed; its caption is where the picture is shown.
    """
    return _LONG_LINE.sub(_without_script, _ENCODED.sub(_without_data, text))


def _without_data(match: re.Match[str]) -> str:
    kind, data = match.lastgroup, match[0]
    if kind in ("words", "lines"):
        words = re.split(r"[+/_-]|\s[\s>]*", data)
        is_encoded = len(data) > LONGEST_WORD * len(words)
    elif kind == "dump":  # a table of decimal numbers has no letters
        is_encoded = len(re.findall("[A-Fa-f]", data)) * 10 > len(data) or "\n0000" in data
    else:
        is_encoded = True
    return data if not is_encoded else "" if kind == "definition" else LEFT_OUT


def _without_script(match: re.Match[str]) -> str:
    line = match[0]
    spaces, ends, brackets = (sum(map(line.count, marks)) / len(line) for marks in (" ", ";=", "(){}"))
    return LEFT_OUT if spaces < 0.08 and ends > 0.02 and brackets > 0.02 else line
