"""Equations of Office files (OMML) and of pages, books and OpenDocument files (MathML) as text on one line.

For example `x = (-b ± √(b² − 4ac)) / 2a`.
"""

import re
import unicodedata
from collections.abc import Callable
from typing import TYPE_CHECKING

from sleuth.tools.documents.formats.marks import index, power
from sleuth.tools.text.normalization import single_line

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_BINARY = "=+−±∓×÷·⋅∗*<>≤≥≠≈≡≅∼→←⇒⇔↔∈∉⊂⊆⊃∪∩∧∨∝-"
_OPERATOR = re.compile(f"([{re.escape(_BINARY)}])")
_SPARE_SPACE = re.compile(r"(?<=[(\[{]) +|(?<! ) +(?=[)\]},;])")
_COMPOUND = re.compile(rf"[\s{re.escape(_BINARY)}]")
_ENCLOSED = re.compile(r"\([^()]*\)|\[[^\[\]]*\]|\|[^|]*\|")
_LARGE = re.compile(r"[∑∏∐∫∬∭∮⋃⋂⨁⨂]|[^\W\d_]{2,}")
"""Signs and words with bounds, such as lim, which a space separates from the term after them."""
_ENDS, _BEGINS = re.compile(r"[\w)\]]\s*\Z"), re.compile(r"\s*[\w(\[√∑∫]")
"""A term before and after a fraction, which is then in parentheses."""
_SIGNS = ("r", "mo", "mi", "mn")
_INVISIBLE = str.maketrans({"\u2061": "", "\u2062": "", "\u2063": ",", "\u2064": "+"})
_ACCENTS = str.maketrans("¯‾_^ˆ~˜→.˙¨", "\u0304\u0304\u0304\u0302\u0302\u0303\u0303\u20d7\u0307\u0307\u0308")


def equation(element: "Element") -> str:
    """Return an equation, or any part of one, as text."""
    return single_line(_text(element))


def _text(element: "Element") -> str:
    name = _name(element)
    if name in _SHAPES:
        write, parts = _SHAPES[name]
        return write(*(_part(element, part) for part in parts))
    write_element = _ELEMENTS.get(name, _row)
    return write_element(element)


def _name(element: "Element") -> str:
    return str(element.tag).rpartition("}")[2]


def _children(element: "Element", name: str = "") -> list["Element"]:
    """Return the children with a name, or all except properties and comments."""
    children = [child for child in element if isinstance(child.tag, str)]
    return [child for child in children if (_name(child) == name if name else not _name(child).endswith("Pr"))]


def _part(element: "Element", part: str | int) -> str:
    """Return a part of an element: of OMML by its name, of MathML by its place."""
    elements = _children(element, part) if isinstance(part, str) else _children(element)[part : part + 1]
    return _text(elements[0]).strip() if part != "" and elements else ""


def _parts(element: "Element", name: str = "") -> list[str]:
    return [_text(child).strip() for child in _children(element, name)]


def _property(element: "Element", name: str, default: str) -> str:
    """Return a property of an element of OMML."""
    settings = [setting for child in element if _name(child).endswith("Pr") for setting in _children(child, name)]
    values = (value for setting in settings for key, value in setting.attrib.items() if key.endswith("val"))
    return next(values, default)


def _row(element: "Element") -> str:
    """Return parts one after the other, with spaces around the operators between two terms."""
    line = (element.text or "").strip()
    children = _children(element)
    for at, child in enumerate(children):
        is_fraction = _name(child) in ("f", "mfrac")
        is_term = is_fraction and (_ENDS.search(line) or _BEGINS.match("".join(map(_text, children[at + 1 :]))))
        text = f"({_text(child)})" if is_term else _text(child)
        for piece in _OPERATOR.split(text) if _name(child) in _SIGNS else [text]:
            before = line.rstrip()[-1:]
            is_between = piece != "" and piece in _BINARY and before != "" and before not in f"{_BINARY}([{{|,;"
            line = f"{line.rstrip()} {piece} " if is_between else line + _gap(line, piece) + piece
        line += (child.tail or "").strip()
    return _SPARE_SPACE.sub("", line)


def _gap(line: str, piece: str) -> str:
    """Return the space before a word such as sin, which has one after it."""
    return " " if piece.endswith(" ") and piece[0].isalpha() and line[-1:].isalnum() else ""


def _sign(element: "Element") -> str:
    """Return the text of a run of OMML or a sign of MathML; a word such as sin is followed by a space."""
    text = "".join(child.text or "" for child in element.iter() if _name(child) in ("t", "mtext", "ms", *_SIGNS))
    text = text.translate(_INVISIBLE)
    return f"{text.strip()} " if re.fullmatch(r"[^\W\d_]{2,}", text.strip()) and _name(element) != "r" else text


def _grouped(text: str) -> str:
    return f"({text})" if _COMPOUND.search(text) and not _ENCLOSED.fullmatch(text) else text


def _fraction(above: str, below: str) -> str:
    return f"{_grouped(above)} / {_grouped(below)}"


def _scripts(base: str, below: str = "", above: str = "") -> str:
    """Return a base with an index and a power, or with its bounds."""
    return _grouped(base) + index(below) + power(above) + " " * bool(_LARGE.fullmatch(base))


def _before(base: str, below: str, above: str) -> str:
    return index(below) + power(above) + base


def _root(inner: str, degree: str = "") -> str:
    return f"{power(degree) if degree not in ('', '2') else ''}√{_grouped(inner)}"


def _applied(function: str, argument: str) -> str:
    return f"{function} {_grouped(argument)}"


def _accent(base: str, accent: str) -> str:
    """Return a base with a mark above it, as a combining character if it is one letter."""
    mark = accent.translate(_ACCENTS)
    return base + mark if len(base) == 1 and unicodedata.combining(mark) else _grouped(base) + accent


def _above(base: str, above: str) -> str:
    is_bound = len(above) != 1 or above.isalnum() or above == "∞"
    return _scripts(base, "", above) if is_bound else _accent(base, above)


def _matrix(element: "Element") -> str:
    """Return the rows of a matrix or of equations below each other."""
    rows = [", ".join(_parts(row, "e" if _name(row) == "mr" else "")) for row in _children(element)]
    return f"[{'; '.join(rows)}]"


def _delimited(element: "Element") -> str:
    """Return terms in parentheses: of OMML by its properties, of MathML by its attributes."""
    if _name(element) == "mfenced":
        names = (("open", "("), ("separators", ","), ("close", ")"))
        opening, separator, closing = (element.get(name, default) for name, default in names)
    else:
        names = (("begChr", "("), ("sepChr", "|"), ("endChr", ")"))
        opening, separator, closing = (_property(element, name, default) for name, default in names)
    inner = f"{separator[:1]} ".join(_parts(element))
    is_matrix = opening in "([" and inner.startswith("[") and inner.endswith("]")
    return inner if is_matrix else f"{opening}{inner}{closing}"


def _sum(element: "Element") -> str:
    sign = _property(element, "chr", "∫")
    return _scripts(sign, _part(element, "sub"), _part(element, "sup")) + _part(element, "e")


def _first(element: "Element") -> str:
    """Return the first child: the others are the same equation for other programs."""
    return "".join(_parts(element)[:1])


_SHAPES: dict[str, tuple[Callable[..., str], tuple[str | int, ...]]] = {
    "f": (_fraction, ("num", "den")), "mfrac": (_fraction, (0, 1)),
    "sSup": (_scripts, ("e", "", "sup")), "msup": (_scripts, (0, "", 1)),
    "sSub": (_scripts, ("e", "sub")), "msub": (_scripts, (0, 1)),
    "sSubSup": (_scripts, ("e", "sub", "sup")), "msubsup": (_scripts, (0, 1, 2)),
    "limLow": (_scripts, ("e", "lim")), "munder": (_scripts, (0, 1)),
    "limUpp": (_scripts, ("e", "", "lim")), "munderover": (_scripts, (0, 1, 2)),
    "rad": (_root, ("e", "deg")), "mroot": (_root, (0, 1)),
    "sPre": (_before, ("e", "sub", "sup")), "func": (_applied, ("fName", "e")), "mover": (_above, (0, 1)),
}  # fmt: skip
"""Parts of an equation, by their element in OMML or MathML."""
_ELEMENTS: dict[str, Callable[["Element"], str]] = {
    **dict.fromkeys(("mtext", "ms", *_SIGNS), _sign),
    **dict.fromkeys(("m", "mtable", "eqArr"), _matrix),
    **dict.fromkeys(("d", "mfenced"), _delimited),
    "nary": _sum,
    "semantics": _first,
    "msqrt": lambda element: _root(_row(element).strip()),
    "bar": lambda element: _accent(_part(element, "e"), "¯"),
    "acc": lambda element: _accent(_part(element, "e"), _property(element, "chr", "^")),
    "mspace": lambda _element: " ",
}
