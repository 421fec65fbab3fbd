"""Text out of Word files, with the numbers of their paragraphs, such as "4.2", which are not part of the text."""

import re
import zipfile
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.content import Content, Place, Section, damage_as
from sleuth.tools.documents.formats.tables import markdown_tables
from sleuth.tools.errors import DocumentError
from sleuth.tools.text.normalization import single_line, title_from

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from docx.oxml.xmlchemy import BaseOxmlElement

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The beginning of files of Office before 2007, and of later ones with a password."""
PROTECTED = "is protected with a password. Save a copy without one."
_KINDS = re.compile(
    rb"application/vnd\.(?:ms-(word|powerpoint)|openxmlformats-officedocument\.(wordprocessing|presentation)ml)\."
    rb"(?:document|template|presentation|slideshow|addin)[\w.]*\.main\+xml"
)
"""Content types of files with macros, of templates and of slide shows."""
_STRICT_NAMESPACE = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)")
_USUAL_NAMESPACE = rb"http://schemas.openxmlformats.org/\1/2006"
_ONCE = "[not(ancestor::*[local-name()='Fallback'])]"
_WORDS = ("w:t", "w:tab", "w:br", "w:noBreakHyphen", "m:oMath", "m:t")
"""Elements of a paragraph of a Word file that are text; those in a fall-back are copies."""
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"))
_UNITS = ((9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


@damage_as("is not a Word file, or is damaged. Save it again as .docx, or leave it out.")
def read_docx(data: bytes) -> Content:
    """Return paragraphs and tables in order as Markdown; the title is the document's own, or its first heading."""
    from docx import Document

    document = Document(BytesIO(office_file(data, "a Word file")))
    blocks = list(_Word(document).blocks(document.element.body))
    around = []
    for kind in ("header", "footer"):
        texts = filter(None, map(_words_below, _parts(document, kind)))
        around.append(Section("\n\n".join(dict.fromkeys(texts)), Place(f"page {kind}")))
    title = title_from(document.core_properties.title)
    properties = office_properties(document.core_properties)
    first_heading = next((block.lstrip("# ") for block in blocks if block.startswith("#")), None)
    return Content(title or title_from(first_heading), [Section("\n\n".join(blocks)), *around], *properties)


def office_file(data: bytes, kind: str) -> bytes:
    """Return an Office file in the form that the libraries read.

    "Strict Open XML" has other namespaces, and files with macros, templates and slide shows have other content types.

    Raises:
        DocumentError: it is not an Office file, or is protected with a password.
    """
    if data.startswith(OLE):
        is_protected = "EncryptedPackage".encode("utf-16-le") in data
        old = "is in a format of Office before 2007. Rename it to .doc, .xls or .ppt."
        raise DocumentError(PROTECTED if is_protected else old)
    with open_zip(data, kind=kind) as archive:
        relations = archive.read("_rels/.rels") if "_rels/.rels" in archive.namelist() else b""
        types = archive.read("[Content_Types].xml") if "[Content_Types].xml" in archive.namelist() else b""
        if not _STRICT_NAMESPACE.search(relations) and _KINDS.sub(_usual_kind, types) == types:
            return data
        usual = BytesIO()
        with zipfile.ZipFile(usual, "w") as copy:
            for name in archive.namelist():
                part = archive.read(name)
                part = _KINDS.sub(_usual_kind, part) if name == "[Content_Types].xml" else part
                xml = name.endswith((".xml", ".rels"))
                copy.writestr(name, _STRICT_NAMESPACE.sub(_USUAL_NAMESPACE, part) if xml else part)
    return usual.getvalue()


def _usual_kind(found: re.Match[bytes]) -> bytes:
    is_word = (found[1] or found[2]).startswith(b"word")
    kind = b"wordprocessingml.document" if is_word else b"presentationml.presentation"
    return b"application/vnd.openxmlformats-officedocument." + kind + b".main+xml"


def office_properties(found: Any) -> tuple[object, object, object]:  # noqa: ANN401 - of python-docx, python-pptx or openpyxl
    """Return the author, the date and the tags of an Office file."""
    author = getattr(found, "author", None) or getattr(found, "creator", None)
    return author, found.modified or found.created, found.keywords


def _parts(document: "WordDocument", kind: str) -> list["BaseOxmlElement"]:
    """Return the parts of a Word file of a kind, such as "footnotes"."""
    from docx.opc.part import XmlPart
    from docx.oxml import parse_xml

    of_kind = (each for each in document.part.rels.values() if each.reltype.endswith(f"/{kind}"))
    parts = [each.target_part for each in of_kind if not each.is_external]
    return [part.element if isinstance(part, XmlPart) else parse_xml(part.blob) for part in parts]


class _Word:
    """The text of a Word file in order, with the numbers of its paragraphs and its notes and comments."""

    def __init__(self, document: "WordDocument") -> None:
        self._names = {style.style_id: style.name or "" for style in document.styles}
        self._numbering = Numbering(next(iter(_parts(document, "numbering")), None), document.styles.element)
        self._notes = {
            (kind, find(note, "string(@w:id)")): text
            for kind in ("footnote", "endnote", "comment")
            for part in _parts(document, f"{kind}s")
            for note in find(part, f"./w:{kind}")
            if (text := _words_below(note))
        }

    def blocks(self, root: "BaseOxmlElement") -> Iterator[str]:
        """Yield the text of each paragraph and table, also of those in content controls and text boxes.

        A note and a comment follow the paragraph or table that refers to it.
        """
        above = "count(ancestor::w:tbl | ancestor::w:p)"
        here = f"[{above} = {find(root, above)}]"
        for element in find(root, f".//w:p{here} | .//w:tbl{here}"):
            is_table = element.tag.endswith("}tbl")
            yield from filter(None, [_table(element) if is_table else self._paragraph(element)])
            for box in [] if is_table else find(element, f".//w:txbxContent{_ONCE}"):
                if find(box, above) == find(element, above) + 1:  # not in another box, which yields it
                    yield from self.blocks(box)
            for kind in ("footnote", "endnote", "comment"):
                for name in find(element, f".//w:{kind}Reference/@w:id"):
                    if text := self._notes.pop((kind, name), ""):
                        yield f"[{kind.capitalize()}: {text}]"

    def _paragraph(self, element: "BaseOxmlElement") -> str:
        """Return one paragraph with its number and the Markdown mark of its style."""
        text = _words(element).strip()
        name = self._names.get(next(iter(find(element, "./w:pPr/w:pStyle/@w:val")), ""), "")
        if not text:
            return ""
        number = self._numbering.number(element)
        text = f"{number} {text}" if number else text
        if heading := re.fullmatch(r"Heading ([1-6])", name):
            return f"{'#' * int(heading[1])} {single_line(text)}"
        if name == "Title":
            return f"# {single_line(text)}"
        return f"- {text}" if name.startswith("List") and not number else text


def _table(table: "BaseOxmlElement") -> str:
    """Return a table; rows and cells may be in content controls, and deleted rows are left out."""
    depth = f"count(ancestor::w:tbl) = {1 + find(table, 'count(ancestor::w:tbl)')}"
    rows = find(table, f".//w:tr[{depth}][not(w:trPr/w:del)]")
    return markdown_tables([[_words_below(cell) for cell in find(row, f".//w:tc[{depth}]")] for row in rows])


def _words_below(element: "BaseOxmlElement") -> str:
    return " ".join(filter(None, map(_words, find(element, ".//w:p")))).strip()


def _words(paragraph: "BaseOxmlElement") -> str:
    """Return the text of a paragraph with insertions, links and formulas, without deletions, moved text and boxes."""
    of_it = f"[count(ancestor::w:p) = {1 + find(paragraph, 'count(ancestor::w:p)')}]"
    present = "[not(ancestor::w:del or ancestor::w:moveFrom)]"
    nodes = find(paragraph, " | ".join(f".//{name}{_ONCE}{of_it}{present}" for name in _WORDS))
    marks = {"tab": "\t", "br": "\n", "noBreakHyphen": "-", "oMath": " "}
    return "".join(marks.get(node.tag.rpartition("}")[2], node.text or "") for node in nodes)


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
