"""Text out of Word and Rich Text files, with the numbers of paragraphs, such as "4.2", that Word computes."""

import re
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from email import message_from_bytes
from email.policy import default as default_policy
from functools import lru_cache
from io import BytesIO
from itertools import chain, repeat, takewhile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.content import Content, Section, office_extra
from sleuth.tools.documents.formats.drawing_ml import objects
from sleuth.tools.documents.formats.equations import equation
from sleuth.tools.documents.formats.marks import Run, box, remark, written
from sleuth.tools.documents.formats.office_parts import RELATED, Part
from sleuth.tools.documents.formats.tables import Cells, Span, markdown_tables
from sleuth.tools.errors import DocumentError
from sleuth.tools.places import Place
from sleuth.tools.text.encodings import decode
from sleuth.tools.text.normalization import single_line, title_from

if TYPE_CHECKING:
    from docx.document import Document as WordDocument
    from lxml.etree import _Element as Element

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
_WORDS = {"t": "", "tab": "\t", "ptab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
"""Elements of a run that are text, and the text of those that have none. A soft hyphen is not among them."""
_NOT_SHOWN = ("del", "moveFrom", "pPr", "sdtPr", "Fallback")
_HYPERLINK = re.compile(r'\bHYPERLINK\s+"([^"]+)"', re.IGNORECASE)
_SYMBOL_FONTS = range(0xE000, 0xF900)
"""Characters without a meaning outside their font, such as those of Wingdings."""
_SEPARATOR = "\0"
"""The end of the instructions of a field: the text that follows is its result."""
_NO = ("0", "false", "off", "none", "")
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"))
_UNITS = ((9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def read_docx(data: bytes) -> Content:
    """Return paragraphs and tables in order as Markdown; the title is the document's own, or its first heading."""
    from docx import Document

    file = office_file(data, "a Word file")
    document = Document(BytesIO(file))
    with open_zip(file) as archive:
        word = _Word(archive, document)
        blocks = list(word.blocks(document.element.body))
        around = []
        for kind in ("header", "footer"):
            texts = filter(None, (word.text(part.root, part) for part in word.part.of_kind(kind)))
            around.append(Section("\n\n".join(dict.fromkeys(texts)), Place(f"page {kind}")))
    title = title_from(document.core_properties.title)
    properties = office_properties(document.core_properties)
    first_heading = next((block.lstrip("# ") for block in blocks if block.startswith("#")), None)
    return Content(title or title_from(first_heading), [Section("\n\n".join(blocks)), *around], *properties)


def read_rtf(data: bytes) -> Content:
    """Return the text of a Rich Text file; footnotes are counted, not read."""
    with office_extra(".rtf", ".docx"):
        from striprtf.striprtf import rtf_to_text
    if not data.lstrip().startswith(b"{\\rtf"):
        raise DocumentError("is not a Rich Text file. Save it again as .rtf.")
    source = decode(data)
    text = str(rtf_to_text(source, errors="replace"))  # type: ignore[no-untyped-call]
    footnotes = len(re.findall(r"\\footnote\b", source))
    note = f"footnotes that are left out: {footnotes}. Save the file as .docx."
    return Content(None, [Section(text)], note=note * (footnotes > 0))


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


def _usual_kind(match: re.Match[bytes]) -> bytes:
    is_word = (match[1] or match[2]).startswith(b"word")
    kind = b"wordprocessingml.document" if is_word else b"presentationml.presentation"
    return b"application/vnd.openxmlformats-officedocument." + kind + b".main+xml"


def office_properties(properties: Any) -> tuple[object, object, object]:  # noqa: ANN401 - of python-docx, python-pptx or openpyxl
    """Return the author, the date and the tags of an Office file."""
    author = getattr(properties, "author", None) or getattr(properties, "creator", None)
    return author, properties.modified or properties.created, properties.keywords


class _Word:
    """The text of a Word file in order, with the numbers of its paragraphs and its notes and comments."""

    def __init__(self, archive: zipfile.ZipFile, document: "WordDocument") -> None:
        self.part = Part(archive, document.part.partname)
        styles = document.styles.element.iterchildren(f"{_W}style")
        self._styles: dict[str, Element] = {style.get(f"{_W}styleId", ""): style for style in styles}
        self._of_style = lru_cache(maxsize=None)(self._find_property)
        self._numbering = Numbering(next((part.root for part in self.part.of_kind("numbering")), None), self._styles)
        self._notes = {
            (kind, find(note, "string(@w:id)")): text
            for kind in ("footnote", "endnote", "comment")
            for part in self.part.of_kind(f"{kind}s")
            for note in find(part.root, f"./w:{kind}")
            if (text := remark(kind.capitalize(), self.text(note, part), find(note, "string(@w:author)")))
        }

    def blocks(self, root: "Element") -> Iterator[str]:
        """Yield the text of each paragraph and table, also of those in content controls and text boxes.

        Notes, comments, charts and diagrams follow the paragraph or table that refers to them.
        """
        above = "count(ancestor::w:tbl | ancestor::w:p)"
        here = f"[{above} = {find(root, above)}]"
        for element in find(root, f".//w:p{here} | .//w:tbl{here} | .//w:altChunk{here}"):
            if element.tag.endswith("}altChunk"):
                yield from _chunk(self.part.related(element.get(f"{RELATED}id")))
                continue
            is_table = element.tag.endswith("}tbl")
            yield from filter(None, [self._table(element) if is_table else self._paragraph(element)])
            for inner in [] if is_table else find(element, f".//w:txbxContent{_ONCE}"):
                if find(inner, above) == find(element, above) + 1:  # not in another box, which yields it
                    yield from self.blocks(inner)
            inside = "" if is_table else f"[count(ancestor::w:p) = {1 + find(element, 'count(ancestor::w:p)')}]"
            for drawing in find(element, f".//w:drawing{_ONCE}{inside}"):
                yield from filter(str.strip, find(drawing, "./*/wp:docPr/@descr"))
                yield from objects(drawing, self.part)
            for kind in ("footnote", "endnote", "comment"):
                for name in find(element, f".//w:{kind}Reference/@w:id"):
                    yield from filter(None, [self._notes.pop((kind, name), "")])

    def text(self, element: "Element", part: Part) -> str:
        """Return the text of all paragraphs in an element on one line."""
        paragraphs = find(element, f".//w:p{_ONCE}")
        texts = (written(self._runs(paragraph, part, Run(""), [])).strip() for paragraph in paragraphs)
        return " ".join(filter(None, texts))

    def _paragraph(self, element: "Element") -> str:
        """Return one paragraph with its number and the Markdown mark of its style."""
        text = written(self._runs(element, self.part, Run(""), [])).strip()
        style = self._styles.get(find(element, "string(./w:pPr/w:pStyle/@w:val)"))
        name = _value(style, "name").lower()
        if not text:
            return ""
        number = self._numbering.number(element)
        text = f"{number} {text}" if number else text
        if heading := re.fullmatch(r"heading ([1-6])", name):
            return f"{'#' * int(heading[1])} {single_line(text)}"
        if name == "title":
            return f"# {single_line(text)}"
        return f"- {text}" if name.startswith("list") and not number else text

    def _table(self, table: "Element") -> str:
        """Return a table; rows and cells may be in content controls, and deleted and hidden rows are left out."""
        depth = f"count(ancestor::w:tbl) = {1 + find(table, 'count(ancestor::w:tbl)')}"
        rows = find(table, f".//w:tr[{depth}][not(w:trPr/w:del or w:trPr/w:hidden)]")
        headers = sum(1 for _ in takewhile(lambda row: find(row, "boolean(./w:trPr/w:tblHeader)"), rows))
        cells: list[Cells] = [[*_before(row), *map(self._cell, find(row, f".//w:tc[{depth}]"))] for row in rows]
        return markdown_tables(cells, headers=headers if headers > 1 else 0)

    def _cell(self, cell: "Element") -> Span:
        columns = int(find(cell, "string(./w:tcPr/w:gridSpan/@w:val)") or 1)
        continues = find(cell, "boolean(./w:tcPr/w:vMerge[not(@w:val = 'restart')])")
        return Span(None if continues else self.text(cell, self.part), columns)

    def _runs(self, element: "Element", part: Part, marks: Run, fields: list[str]) -> Iterator[Run]:
        """Yield the runs of a paragraph with insertions, links and formulas, without deletions, moved text and boxes.

        Args:
            element: a paragraph, or an element of it.
            part: the part of the file, which has the addresses of links.
            marks: the marks of the text in the element.
            fields: the instructions of the fields that are open here.
        """
        for child in element:
            name = str(child.tag).rpartition("}")[2]
            if name == "r":
                yield from self._run(child, marks, fields)
            elif name == "oMath":
                yield marks._replace(text=f" {equation(child)} ")
            elif name == "hyperlink":
                anchor = find(child, "string(@w:anchor)")
                address = part.address(child.get(f"{RELATED}id"))
                address = f"{address}#{anchor}" if address and anchor else address
                yield from self._runs(child, part, marks._replace(address=address), fields)
            elif name == "fldSimple":
                linked = _HYPERLINK.search(find(child, "string(@w:instr)"))
                yield from self._runs(child, part, marks._replace(address=linked[1] if linked else ""), fields)
            elif name not in _NOT_SHOWN:
                yield from self._runs(child, part, marks, fields)

    def _run(self, run: "Element", marks: Run, fields: list[str]) -> Iterator[Run]:
        marks = self._marks(run, marks)
        alternatives = run.iterchildren(f"{_ALTERNATIVES}AlternateContent")
        choices = (choice for element in alternatives for choice in element.iterchildren(f"{_ALTERNATIVES}Choice"))
        for child in chain(run, chain.from_iterable(choices)):
            name = str(child.tag).rpartition("}")[2]
            if name == "fldChar":
                yield marks._replace(text=_field(child, fields))
            elif name == "instrText" and fields:
                fields[-1] += child.text or ""
            elif name in ("sym", "symEx"):
                code = int(find(child, "string(@*[local-name() = 'char'])") or "20", 16)
                yield marks._replace(text="" if code in _SYMBOL_FONTS else chr(code))
            elif name == "ruby":
                base, above = (find(child, f"string(./w:{part})") for part in ("rubyBase", "rt"))
                yield marks._replace(text=f"{base}({above})")
            elif name in _WORDS and all(_SEPARATOR in field for field in fields):
                linked = next((match for field in fields if (match := _HYPERLINK.search(field))), None)
                text = _WORDS[name] or re.sub(r"[\r\n]+", " ", child.text or "")
                yield marks._replace(text=text, address=linked[1] if linked else marks.address)

    def _marks(self, run: "Element", marks: Run) -> Run:
        """Return the marks of a run: its own, or those of its style or of the style of the paragraph."""
        properties = run.find(f"{_W}rPr")
        paragraph = next(run.iterancestors(f"{_W}p"), run)
        elements = (run.find(f"{_W}rPr/{_W}rStyle"), paragraph.find(f"{_W}pPr/{_W}pStyle"))
        styles = [element.get(f"{_W}val", "") for element in elements if element is not None]

        def value(name: str) -> str:
            mark = properties.find(_W + name) if properties is not None else None
            if mark is not None:
                return str(mark.get(f"{_W}val", "1"))
            return next((text for style in styles if style and (text := self._of_style(style, name))), "0")

        return marks._replace(
            raised=value("vertAlign") == "superscript",
            struck=value("strike") not in _NO or value("dstrike") not in _NO,
            hidden=value("vanish") not in _NO,
        )

    def _find_property(self, style: str, name: str) -> str:
        """Return a property of a style, perhaps from the one on which it is based."""
        for _ in range(20):
            element = self._styles.get(style)
            if element is None:
                return ""
            mark = element.find(f"{_W}rPr/{_W}{name}")
            if mark is not None:
                return str(mark.get(f"{_W}val", "1"))
            style = find(element, "string(./w:basedOn/@w:val)")
        return ""


def _before(row: "Element") -> Iterator[str]:
    """Yield empty cells for the columns of a table before the first cell of a row."""
    return repeat("", int(find(row, "string(./w:trPr/w:gridBefore/@w:val)") or 0))


def _field(character: "Element", fields: list[str]) -> str:
    """Open or close a field, and return the box or the entry that an old form field shows."""
    kind = character.get(f"{_W}fldCharType")
    if kind == "end":
        del fields[-1:]
    elif kind == "separate" and fields:
        fields[-1] += _SEPARATOR
    elif kind == "begin":
        fields.append("")
        if find(character, "boolean(./w:ffData/w:checkBox)"):
            states = find(character, ".//w:checked") or find(character, ".//w:checkBox/w:default")
            return box(checked=bool(states) and states[0].get(f"{_W}val", "1") not in _NO)
        entries = find(character, ".//w:ddList/w:listEntry/@w:val")
        chosen = find(character, "string((.//w:ddList/w:result | .//w:ddList/w:default)[1]/@w:val)") or "0"
        return "".join(entries[int(chosen) :][:1])
    return ""


def _chunk(part: Part) -> Iterator[str]:
    """Yield the text of a file of another format that is a part of a Word file."""
    from sleuth.tools.documents.formats.html_format import decode_html, parse_html, whole_page

    suffix = PurePosixPath(part.name).suffix.lower()
    if suffix in (".mht", ".mhtml"):
        page = message_from_bytes(part.data, policy=default_policy).get_body(("html", "plain"))
        content = page.get_payload(decode=True) if page is not None else b""
        yield whole_page(parse_html(decode_html(content if isinstance(content, bytes) else b"")))
    elif suffix in (".htm", ".html", ".xhtml"):
        yield whole_page(parse_html(decode_html(part.data)))
    elif suffix == ".txt":
        yield decode(part.data)
    elif suffix in (".docx", ".rtf"):
        yield from (section.text for section in (read_docx if suffix == ".docx" else read_rtf)(part.data).sections)


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

    def __init__(self, numbering: "Element | None", styles: "Mapping[str, Element]") -> None:
        self._styles = styles
        self._lists: dict[str, tuple[str, dict[int, Any], dict[int, int]]] = {}
        self._counters: dict[str, dict[int, int]] = {}
        self._started: set[str] = set()
        if numbering is None:
            return
        abstract: dict[str, list[Any]] = defaultdict(list)
        for definition in find(numbering, "./w:abstractNum"):
            abstract[find(definition, "string(@w:abstractNumId)")].append(definition)
        for element in find(numbering, "./w:num"):
            key = find(element, "string(./w:abstractNumId/@w:val)")
            definitions = (*abstract.get(key, []), element)
            levels = [level for each in definitions for level in find(each, "./w:lvl | ./w:lvlOverride/w:lvl")]
            overrides = [start.getparent() for start in find(element, "./*/w:startOverride")]
            starts = {_level(override): int(_value(override, "startOverride")) for override in overrides}
            self._lists[find(element, "string(@w:numId)")] = key, {_level(level): level for level in levels}, starts

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
        for deeper in [other for other in counters if other > level]:
            del counters[deeper]
        if level not in levels or _value(levels[level], "numFmt") in ("bullet", "none"):
            return ""

        def format_counter(match: re.Match[str]) -> str:
            at = int(match[1]) - 1
            return _format(counters.setdefault(at, _start(levels.get(at))), _value(levels.get(at), "numFmt"))

        return re.sub(r"%(\d)", format_counter, _value(levels[level], "lvlText")).strip()

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
