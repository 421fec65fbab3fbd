"""Documents with content that readers lose silently: by kind, in each format that can have it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import docx
import openpyxl
import pptx

from tests.support.made_files import saved, zipped

OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
MICROSOFT = "http://schemas.microsoft.com/office/2017/10/relationships"
ADDRESS = "https://apply.example/f7"
_OPEN_XML = {
    "w": "wordprocessingml", "p": "presentationml", "x": "spreadsheetml", "xdr": "drawingml:spreadsheetDrawing",
    "wp": "drawingml:wordprocessingDrawing", "a": "drawingml", "c": "drawingml:chart", "dgm": "drawingml:diagram",
    "m": "officeDocument:math", "mc": "markup-compatibility", "r": "officeDocument:relationships",
}  # fmt: skip


def _office_namespace(path: str) -> str:
    first, _, last = path.partition(":")
    ending = last or ("" if first == "markup-compatibility" else "main")
    return f"http://schemas.openxmlformats.org/{first}/2006{f'/{ending}' if ending else ''}"


NAMES = " ".join(f'xmlns:{prefix}="{_office_namespace(path)}"' for prefix, path in _OPEN_XML.items()) + (
    ' xmlns:v="urn:schemas-microsoft-com:vml" xmlns:a14="http://schemas.microsoft.com/office/drawing/2010/main"'
)
_ODF = {
    "office": "office", "text": "text", "table": "table", "style": "style", "chart": "chart", "draw": "drawing",
    "presentation": "presentation", "svg": "svg-compatible",
}  # fmt: skip
ODF_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{path}:1.0"' for name, path in _ODF.items()
) + (' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"')

Related = tuple[str, str, str, str | None]
"""The id, the type and the target of a relationship, and the content of its part; None for a link."""


@dataclass(frozen=True, slots=True)
class Case:
    """A document with texts that are in it, and others that must not be read."""

    kind: str
    name: str
    data: bytes
    expected: tuple[str, ...]
    absent: tuple[str, ...] = ()


def related(entries: dict[str, bytes], part: str, relations: Sequence[Related]) -> None:
    """Add relationships of a part, and their parts, to the entries of an Office file."""
    folder, _, name = part.rpartition("/")
    rels = f"{folder}/_rels/{name}.rels"
    listed = entries.get(rels, f'<Relationships xmlns="{PACKAGE}"></Relationships>'.encode())
    for id, kind, target, content in relations:
        mode = ' TargetMode="External"' if content is None else ""
        full = kind if ":" in kind else f"{OFFICE}/{kind}"
        added = f'<Relationship Id="{id}" Type="{full}" Target="{target}"{mode}/></Relationships>'
        listed = re.sub(rb"</Relationships>|(?<=<Relationships)([^>]*)/>", added.encode(), listed, count=1)
        if content is not None:
            entries[target.lstrip("/")] = content.encode()
    entries[rels] = listed


@cache
def _base(kind: str) -> dict[str, bytes]:
    """Return the entries of an Office file that is almost empty."""
    if kind == "pptx":
        made: Any = pptx.Presentation()
        made.slides.add_slide(made.slide_layouts[6])
    else:
        made = docx.Document() if kind == "docx" else openpyxl.Workbook()
    with ZipFile(BytesIO(saved(made))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def office(
    kind: str,
    part: str,
    content: str,
    relations: Sequence[Related] = (),
    more: Mapping[str, Sequence[Related]] | None = None,
) -> bytes:
    """Return an Office file with the content of a part, and with more parts.

    Args:
        kind: docx, pptx or xlsx.
        part: the name of the part.
        content: its XML.
        relations: further parts that belong to it.
        more: parts that belong to others, by the name of these.
    """
    entries = {**_base(kind), part: content.encode()}
    for owner, parts in {part: relations, **(more or {})}.items():
        related(entries, owner, parts)
    types = b'<Default Extension="html" ContentType="text/html"/></Types>'
    entries["[Content_Types].xml"] = entries["[Content_Types].xml"].replace(b"</Types>", types)
    return zipped(entries)


def word(body: str, *relations: Related, styles: str = "") -> bytes:
    """Return a Word file."""
    made = office("docx", "word/document.xml", f"<w:document {NAMES}><w:body>{body}</w:body></w:document>", relations)
    if not styles:
        return made
    with ZipFile(BytesIO(made)) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    entries["word/styles.xml"] = entries["word/styles.xml"].replace(b"</w:styles>", f"{styles}</w:styles>".encode())
    return zipped(entries)


def slide(
    shapes: str, *relations: Related, show: str = "1", more: Mapping[str, Sequence[Related]] | None = None
) -> bytes:
    """Return a PowerPoint file of one slide."""
    group = '<p:nvGrpSpPr><p:cNvPr id="1" name=""/><p:cNvGrpSpPr/><p:nvPr/></p:nvGrpSpPr><p:grpSpPr/>'
    tree = f"<p:cSld><p:spTree>{group}{shapes}</p:spTree></p:cSld>"
    return office("pptx", "ppt/slides/slide1.xml", f'<p:sld {NAMES} show="{show}">{tree}</p:sld>', relations, more)


def sheet(
    rows: str,
    *relations: Related,
    after: str = "",
    before: str = "",
    more: Mapping[str, Sequence[Related]] | None = None,
) -> bytes:
    """Return an Excel file of one sheet; `before` and `after` are the elements around its rows."""
    content = f"{before}<sheetData>{rows}</sheetData>{after}"
    xml = f'<worksheet xmlns="{_office_namespace("spreadsheetml")}" {NAMES}>{content}</worksheet>'
    return office("xlsx", "xl/worksheets/sheet1.xml", xml, relations, more)


def opened(body: str, *, kind: str = "text", styles: str = "", objects: Mapping[str, str] | None = None) -> bytes:
    """Return an OpenDocument file: a text, presentation or spreadsheet, with other documents in it."""
    style = f"<office:automatic-styles>{styles}</office:automatic-styles>"
    content = f"{style}<office:body><office:{kind}>{body}</office:{kind}></office:body>"
    inner = {f"{name}/content.xml": text for name, text in (objects or {}).items()}
    return zipped({"content.xml": f"<office:document-content {ODF_NAMES}>{content}</office:document-content>", **inner})


def page(body: str) -> bytes:
    """Return an HTML page."""
    return f"<html><head><title>Harbor</title></head><body>{body}</body></html>".encode()


def book(body: str) -> bytes:
    """Return an EPUB book of one chapter."""
    opf = '<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="a.xhtml"/></manifest>'
    opf += '<spine><itemref idref="a"/></spine></package>'
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    return zipped({"META-INF/container.xml": container, "b.opf": opf, "a.xhtml": page(body)})


def mail(body: str) -> bytes:
    """Return a mail in HTML."""
    return b"From: a@example.org\r\nSubject: Harbor\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page(body)


def in_pages(kind: str, body: str, *expected: str, absent: tuple[str, ...] = ()) -> Iterator[Case]:
    """Yield the same HTML as a page, a chapter of a book and a mail."""
    for name, write in (("html", page), ("epub", book), ("eml", mail)):
        yield Case(kind, f"{kind}.{name}", write(body), expected, absent)


def _in(path: str, *inner: str) -> str:
    """Return XML in elements one in the other: `a:p/a:r`; attributes follow a name."""
    text = "".join(inner)
    for element in reversed(path.split("/")):
        text = f"<{element}>{text}</{element.split()[0]}>"
    return text


def _run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def _p(*runs: str) -> str:
    return f"<w:p>{''.join(runs)}</w:p>"


def _about(kind: str, prefix: str, attributes: str = "") -> str:
    names = f'<{prefix}:cNvPr id="9" name="" {attributes}/><{prefix}:cNv{kind}Pr/><{prefix}:nvPr/>'
    return _in(f"{prefix}:nv{kind}Pr", names)


def _shape(paragraphs: str, prefix: str = "p", attributes: str = "") -> str:
    body = _in(f"{prefix}:txBody", "<a:bodyPr/>", paragraphs)
    return _in(f"{prefix}:sp", _about("Sp", prefix, attributes), f"<{prefix}:spPr/>", body)


def _drawn(*runs: str) -> str:
    return f"<a:p>{''.join(runs)}</a:p>"


def _piece(text: str, attributes: str = "", inner: str = "") -> str:
    return f"<a:r><a:rPr {attributes}>{inner}</a:rPr><a:t>{text}</a:t></a:r>"


def shape(text: str) -> str:
    """Return a shape of a slide with a text."""
    return _shape(_drawn(_piece(text)))


def _frame(inner: str, prefix: str = "p") -> str:
    graphic = _in("a:graphic/a:graphicData", inner)
    return _in(f"{prefix}:graphicFrame", _about("GraphicFrame", prefix), f"<{prefix}:xfrm/>", graphic)


def _cells(row: int, *texts: str, attributes: str = "") -> str:
    cells = "".join(
        f'<c r="{chr(65 + at)}{row}" t="inlineStr"><is><t>{text}</t></is></c>' for at, text in enumerate(texts) if text
    )
    return f'<row r="{row}" {attributes}>{cells}</row>'


def _odf_cell(text: str, attributes: str = "") -> str:
    return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"


def _odf_row(*cells: str, attributes: str = "") -> str:
    return f"<table:table-row {attributes}>{''.join(cells)}</table:table-row>"


def _odf_style(name: str, properties: str, family: str = "text") -> str:
    return _in(f'style:style style:name="{name}" style:family="{family}"', f"<style:{family}-properties {properties}/>")


_COVERED = "<table:covered-table-cell/>"


def spans() -> Iterator[Case]:
    """Yield a table with cells over rows, and one with groups of columns in its header."""
    rows = ("| Pump P1 | inlet | 3 bar |", "| Pump P1 | outlet | 9 bar |")
    head = ("| boat | 2024 Q1 | 2024 Q2 |", "| Heron | 12 | 14 |")

    def cell(text: str, properties: str = "") -> str:
        return f"<w:tc><w:tcPr>{properties}</w:tcPr>{_p(_run(text))}</w:tc>"

    def word_row(*cells: str, before: int = 0) -> str:
        grid = f'<w:trPr><w:gridBefore w:val="{before}"/></w:trPr>' if before else ""
        return f"<w:tr>{grid}{''.join(cells)}</w:tr>"

    table = [
        word_row(cell("device"), cell("place"), cell("pressure")),
        word_row(cell("Pump P1", '<w:vMerge w:val="restart"/>'), cell("inlet"), cell("3 bar")),
        word_row(cell("", "<w:vMerge/>"), cell("outlet"), cell("9 bar")),
        word_row(cell("spare"), before=2),
    ]
    groups = [
        word_row(cell("boat", '<w:vMerge w:val="restart"/>'), cell("2024", '<w:gridSpan w:val="2"/>')),
        word_row(cell("", "<w:vMerge/>"), cell("Q1"), cell("Q2")),
        word_row(*map(cell, ("Heron", "12", "14"))),
    ]
    tables = "".join(f"<w:tbl>{''.join(each)}</w:tbl><w:p/>" for each in (table, groups))
    yield Case("spans", "spans.docx", word(tables), (*rows, "|  |  | spare |", *head))

    def a(text: str, attributes: str = "") -> str:
        return f"<a:tc {attributes}><a:txBody>{_drawn(_piece(text))}</a:txBody></a:tc>"

    slides = [
        [
            [a("device"), a("place"), a("pressure")],
            [a("Pump P1", 'rowSpan="2"'), a("inlet"), a("3 bar")],
            [a("", 'vMerge="1"'), a("outlet"), a("9 bar")],
        ],
        [
            [a("boat", 'rowSpan="2"'), a("2024", 'gridSpan="2"'), a("", 'hMerge="1"')],
            [a("", 'vMerge="1"'), a("Q1"), a("Q2")],
            [a("Heron"), a("12"), a("14")],
        ],
    ]
    frames = "".join(
        _frame(f"<a:tbl>{''.join(f'<a:tr>{chr(32).join(row)}</a:tr>' for row in each)}</a:tbl>") for each in slides
    )
    yield Case("spans", "spans.pptx", slide(frames), (*rows, *head))
    one = (
        _cells(1, "device", "place", "pressure")
        + _cells(2, "Pump P1", "inlet", "3 bar")
        + _cells(3, "", "outlet", "9 bar")
    )
    yield Case("spans", "spans.xlsx", sheet(one, after='<mergeCells><mergeCell ref="A2:A3"/></mergeCells>'), rows)
    two = _cells(1, "Fleet") + _cells(2, "boat", "2024") + _cells(3, "", "Q1", "Q2") + _cells(4, "Heron", "12", "14")
    merged = "".join(f'<mergeCell ref="{ref}"/>' for ref in ("A1:C1", "A2:A3", "B2:C2"))
    yield Case("spans", "groups.xlsx", sheet(two, after=f"<mergeCells>{merged}</mergeCells>"), ("Fleet\n\n", *head))
    down, across = 'table:number-rows-spanned="2"', 'table:number-columns-spanned="2"'
    first = _odf_row(*map(_odf_cell, ("device", "place", "pressure")))
    first += _odf_row(_odf_cell("Pump P1", down), _odf_cell("inlet"), _odf_cell("3 bar"))
    first += _odf_row(_COVERED, _odf_cell("outlet"), _odf_cell("9 bar"))
    second = _odf_row(_odf_cell("boat", down), _odf_cell("2024", across), _COVERED)
    second += _odf_row(_COVERED, _odf_cell("Q1"), _odf_cell("Q2")) + _odf_row(*map(_odf_cell, ("Heron", "12", "14")))
    named = "".join(f'<table:table table:name="T">{each}</table:table>' for each in (first, second))
    yield Case("spans", "spans.odt", opened(named), (*rows, *head))
    yield Case("spans", "spans.ods", opened(named, kind="spreadsheet"), (*rows, *head))
    framed = f"<draw:page><draw:frame>{named}</draw:frame></draw:page>"
    yield Case("spans", "spans.odp", opened(framed, kind="presentation"), (*rows, *head))
    html = "<table><tr><th>device<th>place<th>pressure<tr><td rowspan=2>Pump P1<td>inlet<td>3 bar"
    html += "<tr><td>outlet<td>9 bar</table><table><thead><tr><th rowspan=2>boat<th colspan=2>2024<tr><th>Q1<th>Q2"
    html += "</thead><tr><td>Heron<td>12<td>14</table>"
    yield from in_pages("spans", html, *rows, *head)


def links() -> Iterator[Case]:
    """Yield a link in a sentence."""
    expected = (f"Apply with the [form]({ADDRESS}) today.",)
    rel = ("rId9", "hyperlink", ADDRESS, None)
    linked = f'<w:hyperlink r:id="rId9">{_run("form")}</w:hyperlink>'
    yield Case("links", "links.docx", word(_p(_run("Apply with the "), linked, _run(" today.")), rel), expected)
    instruction = f'<w:instrText> HYPERLINK "{ADDRESS}" </w:instrText>'
    field = f'<w:fldChar w:fldCharType="begin"/>{instruction}<w:fldChar w:fldCharType="separate"/>'
    end = '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
    complex_field = _p(_run("Apply with the "), f"<w:r>{field}</w:r>", _run("form"), end, _run(" today."))
    yield Case("links", "fields.docx", word(complex_field), expected)
    runs = (_piece("Apply with the "), _piece("form", inner='<a:hlinkClick r:id="rId9"/>'), _piece(" today."))
    yield Case("links", "links.pptx", slide(_shape(_drawn(*runs)), rel), expected)
    rows = _cells(1, "paper", "from") + _cells(2, "form", "office")
    after = '<hyperlinks><hyperlink ref="A2" r:id="rId9"/></hyperlinks>'
    yield Case("links", "links.xlsx", sheet(rows, rel, after=after), (f"| [form]({ADDRESS}) | office |",))
    formula = f'<row r="1"><c r="A1" t="str"><f>HYPERLINK("{ADDRESS}","form")</f><v>form</v></c></row>'.replace(
        '"form")', "&quot;form&quot;)"
    )
    yield Case("links", "formula.xlsx", sheet(formula), (f"[form]({ADDRESS})",))
    text = f'<text:p>Apply with the <text:a xlink:href="{ADDRESS}">form</text:a> today.</text:p>'
    yield Case("links", "links.odt", opened(text), expected)
    framed = f"<draw:page><draw:frame><draw:text-box>{text}</draw:text-box></draw:frame></draw:page>"
    yield Case("links", "links.odp", opened(framed, kind="presentation"), expected)
    cell = _odf_row(_odf_cell(f'<text:a xlink:href="{ADDRESS}">form</text:a>'), _odf_cell("office"))
    table = f'<table:table table:name="T">{cell}</table:table>'
    yield Case("links", "links.ods", opened(table, kind="spreadsheet"), (f"| [form]({ADDRESS}) | office |",))
    yield from in_pages("links", f"<p>Apply with the <a href='{ADDRESS}'>form</a> today.", *expected)


def marks() -> Iterator[Case]:
    """Yield powers, line breaks, struck prices and hidden text."""
    expected = ("The tank has 10⁶ m³ of oil.", "~~750~~ 820 euro", "12 Mill Lane\nSennick")
    absent = ("secret", "106")
    up, hidden = '<w:vertAlign w:val="superscript"/>', "<w:vanish/>"
    body = _p(_run("The tank has 10"), _run("6", up), _run(" m"), _run("3", '<w:rStyle w:val="Up"/>'), _run(" of oil."))
    deleted = "<w:del><w:r><w:delText>secret</w:delText></w:r></w:del>"
    body += _p(_run("750", "<w:strike/>"), _run(" 820 euro"), _run("secret", hidden), deleted)
    body += _p(
        _run("12 Mill Lane"), "<w:r><w:cr/></w:r>", _run("Sennick, the har"), "<w:r><w:softHyphen/></w:r>", _run("bor")
    )
    style = f'<w:style w:type="character" w:styleId="Up"><w:name w:val="Up"/><w:rPr>{up}</w:rPr></w:style>'
    yield Case("marks", "marks.docx", word(body, styles=style), (*expected, "the harbor"), absent)
    raised, lines = 'baseline="30000"', _drawn(_piece("12 Mill Lane"), "<a:br/>", _piece("Sennick"))
    price = _drawn(_piece("750", 'strike="sngStrike"'), _piece(" 820 euro"))
    oil = _drawn(_piece("The tank has 10"), _piece("6", raised), _piece(" m"), _piece("3", raised), _piece(" of oil."))
    secret = _shape(_drawn(_piece("secret")), attributes='hidden="1"')
    yield Case("marks", "marks.pptx", slide(_shape(oil + price + lines) + secret), expected, absent)
    up = '<rPr><vertAlign val="superscript"/></rPr>'
    rich = f"<r><t>The tank has 10</t></r><r>{up}<t>6</t></r><r><t> m</t></r><r>{up}<t>3</t></r><r><t> of oil.</t></r>"
    old = "<r><rPr><strike/></rPr><t>750</t></r><r><t> 820 euro</t></r>"
    cells = "".join(
        f'<row r="{at}"><c r="A{at}" t="inlineStr"><is>{each}</is></c></row>' for at, each in enumerate((rich, old), 1)
    )
    yield Case("marks", "marks.xlsx", sheet(cells), expected[:2], absent)
    styles = _odf_style("up", 'style:text-position="super 58%"') + _odf_style(
        "old", 'style:text-line-through-style="solid"'
    )
    styles += _odf_style("no", 'text:display="none"')
    span = '<text:span text:style-name="{}">{}</text:span>'
    text = f"<text:p>The tank has 10{span.format('up', 6)} m{span.format('up', 3)} of oil.</text:p>"
    text += f"<text:p>{span.format('old', 750)} 820 euro{span.format('no', 'secret')}</text:p>"
    text += "<text:p>12 Mill Lane<text:line-break/>Sennick</text:p>"
    yield Case("marks", "marks.odt", opened(text, styles=styles), expected, absent)
    html = "<p>The tank has 10<sup>6</sup> m<sup>3</sup> of oil.<p><s>750</s> 820 euro"
    html += "<span style='display: none'>secret</span><p>12 Mill Lane<br>Sennick<p hidden>secret</p>"
    yield from in_pages("marks", html, *expected, absent=absent)


def boxes() -> Iterator[Case]:
    """Yield checked and empty boxes."""
    expected = ("☑ Yes", "☐ No")
    field = '<w:r><w:fldChar w:fldCharType="{}">{}</w:fldChar></w:r>'
    data = '<w:ffData><w:checkBox><w:default w:val="0"/>{}</w:checkBox></w:ffData>'
    forms = "".join(
        _p(field.format("begin", data.format(state)), field.format("end", ""), _run(f" {text}"))
        for state, text in (("<w:checked/>", "Yes"), ("", "No"))
    )
    yield Case("boxes", "forms.docx", word(forms), expected)
    yield from in_pages("boxes", "<p><input type=checkbox checked> Yes<p><input type=checkbox> No", *expected)


def equations() -> Iterator[Case]:
    """Yield the solution of a quadratic equation."""
    expected = ("x = (-b ± √(b² − 4ac)) / 2a",)

    def r(text: str) -> str:
        return f"<m:r><m:t>{text}</m:t></m:r>"

    root = f"<m:rad><m:deg/><m:e><m:sSup><m:e>{r('b')}</m:e><m:sup>{r('2')}</m:sup></m:sSup>{r('−4ac')}</m:e></m:rad>"
    office_math = f"<m:oMath>{r('x=')}<m:f><m:num>{r('-b±')}{root}</m:num><m:den>{r('2a')}</m:den></m:f></m:oMath>"
    yield Case("equations", "equations.docx", word(_p(_run("Here "), office_math)), expected)
    choice = _in('mc:AlternateContent/mc:Choice Requires="a14"/a14:m', office_math)
    yield Case("equations", "equations.pptx", slide(_shape(_drawn(_piece("Here "), choice))), expected)
    math = "<mi>x</mi><mo>=</mo><mfrac><mrow><mo>-</mo><mi>b</mi><mo>±</mo><msqrt><msup><mi>b</mi><mn>2</mn></msup>"
    math += "<mo>−</mo><mn>4</mn><mi>a</mi><mi>c</mi></msqrt></mrow><mrow><mn>2</mn><mi>a</mi></mrow></mfrac>"
    yield from in_pages("equations", f"<p>Here <math>{math}</math>", *expected)
    frame = '<text:p>Here <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></text:p>'
    objects = {"Object 1": f'<math xmlns="http://www.w3.org/1998/Math/MathML">{math}</math>'}
    yield Case("equations", "equations.odt", opened(frame, objects=objects), expected)


def _chart() -> str:
    def points(cache: str, *values: str) -> str:
        listed = "".join(f'<c:pt idx="{at}"><c:v>{value}</c:v></c:pt>' for at, value in enumerate(values))
        return f"<c:{cache}Ref><c:{cache}Cache>{listed}</c:{cache}Cache></c:{cache}Ref>"

    title = f"<c:title><c:tx><c:rich>{_drawn(_piece('Boats of the harbor'))}</c:rich></c:tx></c:title>"
    categories = _in("c:cat", points("str", "1843", "1871"))
    series = _in("c:tx", points("str", "boats")) + categories + _in("c:val", points("num", "1234567", "14"))
    drawn = _in("c:chart", title, _in("c:plotArea/c:bar3DChart/c:ser", series))
    return f"<c:chartSpace {NAMES}>{drawn}</c:chartSpace>"


def _diagram() -> str:
    def point(id: str, text: str) -> str:
        return f'<dgm:pt modelId="{id}"><dgm:t>{_drawn(_piece(text))}</dgm:t></dgm:pt>'

    points = '<dgm:pt modelId="0" type="doc"/>' + point("1", "Harbor master") + point("2", "Pilot")
    links = '<dgm:cxn srcId="0" destId="1" srcOrd="0"/><dgm:cxn srcId="1" destId="2" srcOrd="0"/>'
    return f"<dgm:dataModel {NAMES}><dgm:ptLst>{points}</dgm:ptLst><dgm:cxnLst>{links}</dgm:cxnLst></dgm:dataModel>"


def drawings() -> Iterator[Case]:
    """Yield charts, diagrams and shapes."""
    expected = (
        "Boats of the harbor",
        "|  | boats |",
        "| 1843 | 1234567 |",
        "| 1871 | 14 |",
        "- Harbor master\n  - Pilot",
    )
    chart, diagram = '<c:chart r:id="rId8"/>', '<dgm:relIds r:dm="rId7"/>'

    def parts(folder: str) -> tuple[Related, Related]:
        return ("rId8", "chart", f"/{folder}/charts/chart1.xml", _chart()), (
            "rId7",
            "diagramData",
            f"/{folder}/diagrams/data1.xml",
            _diagram(),
        )

    inline = _in("w:r/w:drawing/wp:inline/a:graphic/a:graphicData", "{}")
    yield Case(
        "drawings", "drawings.docx", word(_p(inline.format(chart), inline.format(diagram)), *parts("word")), expected
    )
    yield Case("drawings", "drawings.pptx", slide(_frame(chart) + _frame(diagram), *parts("ppt")), expected)
    shapes = _frame(chart, "xdr") + _frame(diagram, "xdr") + _shape(_drawn(_piece("Closed in winter")), "xdr")
    drawing = f"<xdr:wsDr {NAMES}><xdr:twoCellAnchor>{shapes}</xdr:twoCellAnchor></xdr:wsDr>"
    drawn = ("rId1", "drawing", "/xl/drawings/drawing1.xml", drawing)
    more = {"xl/drawings/drawing1.xml": parts("xl")}
    made = sheet(_cells(1, "boat"), drawn, after='<drawing r:id="rId1"/>', more=more)
    yield Case("drawings", "drawings.xlsx", made, (*expected, "Closed in winter"))
    frame = '<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>'
    rows = (
        _odf_row(_odf_cell(""), _odf_cell("boats"))
        + _odf_row(_odf_cell("1843"), _odf_cell("1234567"))
        + _odf_row(_odf_cell("1871"), _odf_cell("14"))
    )
    title = "<chart:title><text:p>Boats of the harbor</text:p></chart:title>"
    inner = _in("office:body/office:chart/chart:chart", title, _in("table:table", rows))
    inner = f"<office:document-content {ODF_NAMES}>{inner}</office:document-content>"
    objects = {"Object 1": inner}
    yield Case("drawings", "drawings.odt", opened(f"<text:p>{frame}</text:p>", objects=objects), expected[:4])
    table = (
        f'<table:table table:name="T"><table:shapes>{frame}</table:shapes>{_odf_row(_odf_cell("boat"))}</table:table>'
    )
    yield Case("drawings", "drawings.ods", opened(table, kind="spreadsheet", objects=objects), expected[:4])
    yield Case(
        "drawings",
        "drawings.odp",
        opened(f"<draw:page>{frame}</draw:page>", kind="presentation", objects=objects),
        expected[:4],
    )
    chunk = (
        "rId5",
        "aFChunk",
        "/word/chunk.html",
        "<html><body><h2>Fees</h2><p>Boats pay nine euro.</p></body></html>",
    )
    yield Case(
        "drawings",
        "chunk.docx",
        word(_p(_run("Before.")) + '<w:altChunk r:id="rId5"/>', chunk),
        ("Before.", "## Fees", "Boats pay nine euro."),
    )


def comments() -> Iterator[Case]:
    """Yield notes and comments with their authors."""
    expected = ("[Comment by Rosa Quill: Ask the pilot.]",)
    reference = '<w:r><w:commentReference w:id="0"/></w:r>'
    listed = _in('w:comment w:id="0" w:author="Rosa Quill"', _p(_run("Ask the pilot.")))
    listed = f"<w:comments {NAMES}>{listed}</w:comments>"
    yield Case(
        "comments",
        "comments.docx",
        word(_p(_run("The Heron."), reference), ("rId5", "comments", "/word/comments.xml", listed)),
        expected,
    )
    authors = f'<p:cmAuthorLst {NAMES}><p:cmAuthor id="3" name="Rosa Quill"/></p:cmAuthorLst>'
    cm = f'<p:cmLst {NAMES}><p:cm authorId="3"><p:text>Ask the pilot.</p:text></p:cm></p:cmLst>'
    more = {"ppt/presentation.xml": [("rId77", "commentAuthors", "/ppt/commentAuthors.xml", authors)]}
    old = slide(_shape(_drawn(_piece("The Heron."))), ("rId6", "comments", "/ppt/comments/comment1.xml", cm), more=more)
    yield Case("comments", "comments.pptx", old, expected)
    modern = "http://schemas.microsoft.com/office/powerpoint/2018/8/main"
    people = f'<q:authorLst xmlns:q="{modern}"><q:author id="{{7}}" name="Rosa Quill"/></q:authorLst>'
    body = f"<q:txBody>{_drawn(_piece('Ask the pilot.'))}</q:txBody>"
    reply = _in('q:replyLst/q:reply authorId="{7}"', body.replace("Ask the pilot.", "She knows."))
    cm = f'<q:cmLst xmlns:q="{modern}" {NAMES}><q:cm authorId="{{7}}">{body}{reply}</q:cm></q:cmLst>'
    kind = "http://schemas.microsoft.com/office/2018/10/relationships/"
    more = {"ppt/presentation.xml": [("rId77", f"{kind}authors", "/ppt/authors.xml", people)]}
    new = slide(_shape(_drawn(_piece("The Heron."))), ("rId6", f"{kind}comments", "/ppt/comments/c.xml", cm), more=more)
    yield Case("comments", "replies.pptx", new, (*expected, "[Comment by Rosa Quill: She knows.]"))
    disclaimer = "[Threaded comment]\n\nYour version of Excel allows you to read this threaded comment. Learn more: "
    disclaimer += "https://go.microsoft.com/fwlink/?linkid=870924\n\nComment:\n    Ask the pilot."
    legacy = _in("authors/author", "tc={1}") + _in(
        'commentList/comment ref="A1" authorId="0"', f"<text><t>{disclaimer}</t></text>"
    )
    legacy = f'<comments xmlns="{_office_namespace("spreadsheetml")}">{legacy}</comments>'
    namespace = 'xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"'
    thread = _in('threadedComment ref="A1" personId="{7}" id="{1}"/text', "Ask the pilot.")
    thread = f"<ThreadedComments {namespace}>{thread}</ThreadedComments>"
    people = f'<personList {namespace}><person displayName="Rosa Quill" id="{{7}}"/></personList>'
    parts: list[Related] = [
        ("rId3", "comments", "/xl/comments1.xml", legacy),
        ("rId4", f"{MICROSOFT}/threadedComment", "/xl/threadedComments/t1.xml", thread),
    ]
    more = {"xl/workbook.xml": [("rId78", f"{MICROSOFT}/person", "/xl/persons/person.xml", people)]}
    yield Case(
        "comments",
        "comments.xlsx",
        sheet(_cells(1, "Heron"), *parts, more=more),
        ("Heron [Comment by Rosa Quill: Ask the pilot.]",),
        ("Threaded", "Your version"),
    )
    yield Case(
        "comments",
        "copies.xlsx",
        sheet(_cells(1, "Heron"), parts[0]),
        ("Heron [Comment: Ask the pilot.]",),
        ("Threaded", "Your version"),
    )
    annotation = (
        "<office:annotation><dc:creator>Rosa Quill</dc:creator><text:p>Ask the pilot.</text:p></office:annotation>"
    )
    note = "<text:note-citation>1</text:note-citation>" + _in("text:note-body/text:p", "Sunk in 1901.")
    note = _in('text:note text:note-class="footnote"', note)
    yield Case(
        "comments",
        "comments.odt",
        opened(f"<text:p>The Heron{note} sails.{annotation}</text:p>"),
        ("The Heron sails.", "[Footnote: Sunk in 1901.]", *expected),
    )
    cell = _odf_row(_in("table:table-cell", annotation, "<text:p>Heron</text:p>"))
    cell = _in('table:table table:name="T"', cell)
    yield Case(
        "comments", "comments.ods", opened(cell, kind="spreadsheet"), ("Heron [Comment by Rosa Quill: Ask the pilot.]",)
    )
    notes = _in("presentation:notes/draw:frame/draw:text-box/text:p", "Mention the fee.")
    yield Case(
        "comments",
        "comments.odp",
        opened(f"<draw:page>{annotation}{notes}</draw:page>", kind="presentation"),
        (*expected, "Notes: Mention the fee."),
    )


def hidden() -> Iterator[Case]:
    """Yield hidden rows, columns, sheets and slides, which are marked."""
    rows = (
        _cells(1, "item", "old", "new")
        + _cells(2, "Rope", "750", "820")
        + _cells(3, "Sail", "900", "901", attributes='hidden="1"')
    )
    columns = '<cols><col min="2" max="2" hidden="1"/></cols>'
    expected = ("| item | (hidden) old | new |", "| Rope | 750 | 820 |", "| (hidden) Sail | 900 | 901 |")
    yield Case("hidden", "hidden.xlsx", sheet(rows, before=columns), expected)
    book = openpyxl.Workbook()
    book.create_sheet("Draft").append(["Sketch"])
    book["Draft"].sheet_state = "hidden"
    yield Case("hidden", "sheet.xlsx", saved(book), ("## Draft (hidden)", "Sketch"))
    yield Case("hidden", "hidden.pptx", slide(_shape(_drawn(_piece("Backup"))), show="0"), ("(hidden)\n\nBackup",))
    cells = _odf_row(*map(_odf_cell, ("item", "old", "new"))) + _odf_row(*map(_odf_cell, ("Rope", "750", "820")))
    cells += _odf_row(*map(_odf_cell, ("Sail", "900", "901")), attributes='table:visibility="filter"')
    columns = '<table:table-column/><table:table-column table:visibility="collapse"/><table:table-column/>'
    table = f'<table:table table:name="T" table:style-name="no">{columns}{cells}</table:table>'
    styles = _odf_style("no", 'table:display="false"', "table")
    yield Case("hidden", "hidden.ods", opened(table, kind="spreadsheet", styles=styles), ("## T (hidden)", *expected))
    page_style = _odf_style("no", 'presentation:visibility="hidden"', "drawing-page")
    text = "<draw:frame><draw:text-box><text:p>Backup</text:p></draw:text-box></draw:frame>"
    made = opened(f'<draw:page draw:style-name="no">{text}</draw:page>', kind="presentation", styles=page_style)
    yield Case("hidden", "hidden.odp", made, ("(hidden)\n\nBackup",))


def cases() -> Iterator[Case]:
    """Yield the documents of all kinds."""
    for make in (spans, links, marks, boxes, equations, drawings, comments, hidden):
        yield from make()


def unwanted(case: Case, text: str) -> list[str]:
    """Return the texts that must not be read, but are."""
    return [absent for absent in case.absent if absent in text]
