"""The text of a file has everything that its reader sees: office files, mails, pages, tables and encodings."""

import json
import re
from collections.abc import Callable
from datetime import date, timedelta
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

import docx
import openpyxl
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from made_files import drawn, mail, office, rezipped, saved, text_of, zipped
from openpyxl.comments import Comment
from pptx import Presentation
from pptx.chart.data import CategoryChartData, XyChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches
from pypdf import PdfReader, PdfWriter
from reportlab.pdfgen.canvas import Canvas

from sleuth.tools.documents.formats.book_formats import read_eml, read_epub, read_mbox, read_notebook
from sleuth.tools.documents.formats.content import Content
from sleuth.tools.documents.formats.excel_format import read_xlsx
from sleuth.tools.documents.formats.html_format import read_html
from sleuth.tools.documents.formats.number_formats import format_number
from sleuth.tools.documents.formats.pdf_format import read_pdf
from sleuth.tools.documents.formats.plain_formats import read_table
from sleuth.tools.documents.formats.powerpoint_format import read_pptx
from sleuth.tools.documents.formats.word_format import read_docx, read_rtf
from sleuth.tools.documents.loading import load
from sleuth.tools.errors import DocumentError
from sleuth.tools.places import quote_location
from sleuth.tools.text.encodings import encoding_doubt
from sleuth.tools.text.normalization import normalize

W = nsdecls("w")


def excel(fill: Callable[[openpyxl.worksheet.worksheet.Worksheet], object], dimension: str = "") -> Content:
    def claim(name: str, data: bytes) -> bytes:
        is_sheet = dimension and "worksheets/sheet" in name
        return re.sub(rb'(<dimension ref=)"[^"]*"', rb'\1"%s"' % dimension.encode(), data) if is_sheet else data

    book = openpyxl.Workbook()
    fill(book.worksheets[0])
    return read_xlsx(rezipped(saved(book), claim))


def strict(file: bytes) -> bytes:
    """Return an Office file as "Strict Open XML"."""
    usual = re.compile(rb"http://schemas\.openxmlformats\.org/(officeDocument|\w+ml)/2006")
    return rezipped(file, lambda _, data: usual.sub(rb"http://purl.oclc.org/ooxml/\1", data))


def test_strict_office_files_are_read() -> None:
    for suffix, read in ((".docx", read_docx), (".xlsx", read_xlsx), (".pptx", read_pptx)):
        usual = office(suffix, "Edric Gannow built the mill.")
        assert "Edric Gannow built the mill." in text_of(read(strict(usual))) == text_of(read(usual))


def test_slide_has_the_values_of_charts_and_descriptions_of_pictures() -> None:
    shown, values, points = Presentation(), CategoryChartData(), XyChartData()
    values.categories = ["1843", "1871"]
    values.add_series("boats", (12, None))
    points.add_series("depth").add_data_point(2.5, 40)
    slide, place = shown.slides.add_slide(shown.slide_layouts[6]), [Inches(1)] * 4
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, values).chart
    chart.chart_title.text_frame.text = "Boats of the harbor"
    slide.shapes.add_chart(XL_CHART_TYPE.XY_SCATTER, *place, points)
    slide.shapes.add_textbox(*place)._element.nvSpPr.cNvPr.set("descr", "A drawing of the old harbor")
    text = text_of(read_pptx(saved(shown)))
    assert "Boats of the harbor\n\n|  | boats |\n| --- | --- |\n| 1843 | 12 |\n| 1871 |  |" in text
    assert "| depth |" in text and "| 40 |" in text
    assert "A drawing of the old harbor" in text


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_mails_of_a_mailbox_are_read_with_their_own_place(end: str) -> None:
    lines = [
        *("From ada@x.org Tue Mar  4 10:00:00 2025", "From: ada@x.org", "Subject: one", "", "The first mail.", ""),
        *("From edric@x.org Tue Mar  4 11:00:00 2025", "From: edric@x.org", "", "Second."),
        *(">From here", "From there", ""),
        *("From nobody Tue Mar  4 12:00:00 2025", "", "no headers", ""),
    ]
    content = read_mbox(end.join(lines).encode())
    assert [each.place.name for each in content.sections if each.place] == [
        "mail from ada@x.org",
        "mail from edric@x.org",
    ]
    assert "The first mail." in text_of(content)
    assert "Second.\nFrom here\nFrom there" in text_of(content).replace("\r\n", "\n")
    assert content.note == "mails that cannot be read: 1"


def test_footnotes_of_rich_text_are_named_as_left_out() -> None:
    content = read_rtf(rb"{\rtf1\ansi The mill{\footnote A note.} stands.\par}")
    assert "The mill stands." in text_of(content)
    assert content.note.startswith("footnotes that are left out: 1.")


@pytest.mark.parametrize("dimension", ["A1", "A1:B3", "A1:XFD1048576", "C7:D9"])
def test_sheet_with_a_wrong_dimension_is_read_whole(dimension: str) -> None:
    rows = [["boat", "harbor"], *([f"boat {number}", f"harbor {number}"] for number in range(2, 40))]
    content = excel(lambda sheet: [sheet.append(row) for row in rows], dimension)
    assert "| boat 39 | harbor 39 |" in text_of(content)
    assert content.sections[-1].place and content.sections[-1].place.last == 39


def test_sheet_shows_formulas_merged_values_and_comments() -> None:
    def fill(sheet: openpyxl.worksheet.worksheet.Worksheet) -> None:
        for row in (["coast", "boat", "fee"], ["north", "Heron", 2], [None, "Wagtail", 3], [None, "Ash", "=C2+C3"]):
            sheet.append(row)
        sheet.merge_cells("A2:A4")
        sheet["B2"].comment = Comment("sunk in 1901", "Rosa")

    content = excel(fill)
    assert "| north | Heron [Comment by Rosa: sunk in 1901] | 2 |" in text_of(content)
    assert "| north | Wagtail | 3 |\n| north | Ash | =C2+C3 |" in text_of(content)
    assert "not stored: 1." in content.note


def test_sheet_keeps_dates_durations_and_shows_formats() -> None:
    def fill(sheet: openpyxl.worksheet.worksheet.Worksheet) -> None:
        sheet.append(["day", "share", "time"])
        sheet.append([date(2021, 3, 4), 0.075, timedelta(hours=25, minutes=30)])
        sheet["B2"].number_format = "0.0%"

    assert "| 2021-03-04 | 7.5% | 25:30:00 |" in text_of(excel(fill))


SHOWN = {
    (0.25, "0%"): "25%", (1234.5, '#,##0.00 "EUR"'): "1,234.50 EUR", (1234.5, "#,##0.00\\ [$€-407]"): "1,234.50 €",
    (-5, "#,##0_);(#,##0)"): "(5)", (-5.5, "0.0"): "-5.5", (42, "00000"): "00042", (3.0, "0.##"): "3",
    (0.125, "0.00"): "0.13", (1_234_567, "#,##0,"): "1,235", (1e30, "0.0"): "1" + "0" * 30 + ".0",
    (0.5, "# ?/?"): "0.5", (5, "General"): "5",
}  # fmt: skip


def test_numbers_are_shown_in_their_formats() -> None:
    assert {(number, code): format_number(number, code) for number, code in SHOWN} == SHOWN


def test_titles_above_a_sheet_are_not_its_header() -> None:
    rows = [["Fees of the harbor"], [], ["Year 2024"], ["boat", "fee"], ["Heron", 2]]
    text = text_of(excel(lambda sheet: [sheet.append(row) for row in rows]))
    assert text == "## Sheet\n\nFees of the harbor\n\nYear 2024\n\n| boat | fee |\n| --- | --- |\n| Heron | 2 |"


def word(fill: Callable[[docx.document.Document], object], parts: dict[str, str] | None = None) -> str:
    document, names = docx.Document(), parts or {}
    fill(document)
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    rels = "".join(f'<Relationship Id="x{part}" Type="{office}/{part}" Target="{part}.xml"/>' for part in names)
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    types = "".join(f'<Override PartName="/word/{part}.xml" ContentType="{kind}.{part}+xml"/>' for part in names)

    def declare(name: str, data: bytes) -> bytes:
        more = {"word/_rels/document.xml.rels": (rels, b"</Rel"), "[Content_Types].xml": (types, b"</Types")}
        added, end = more.get(name, ("", b"</"))
        return data.replace(end, added.encode() + end) if added else data

    return text_of(read_docx(rezipped(saved(document), declare, {f"word/{part}.xml": names[part] for part in names})))


def run(xml: str) -> object:
    return parse_xml(f"<w:r {W}>{xml}</w:r>")


@pytest.mark.parametrize("kind", ["footnote", "endnote"])
def test_word_notes_follow_the_paragraph_that_refers_to_them(kind: str) -> None:
    note = f'<w:{kind}s {W}><w:{kind} w:id="3"><w:p><w:r><w:t>Sunk in 1901.</w:t></w:r></w:p></w:{kind}></w:{kind}s>'

    def fill(document: docx.document.Document) -> None:
        document.add_paragraph("The Heron.")._p.append(run(f'<w:{kind}Reference w:id="3"/>'))
        document.add_paragraph("The Wagtail.")

    assert word(fill, {f"{kind}s": note}) == f"The Heron.\n\n[{kind.capitalize()}: Sunk in 1901.]\n\nThe Wagtail."


def surroundings(document: docx.document.Document) -> None:
    paragraph = document.add_paragraph("The Heron sails daily.")
    document.add_comment(paragraph.runs, text="Weekly, I think.")
    document.sections[0].header.paragraphs[0].text = "Harbor office"
    document.sections[0].footer.paragraphs[0].text = "Draft"


def text_box(document: docx.document.Document) -> None:
    box = "".join(f"<w:p><w:r><w:t>{word}</w:t></w:r></w:p>" for word in ("Mooring", "Harbor"))
    content = f"<w:txbxContent>{box}</w:txbxContent>"
    shape = f"<w:pict><v:textbox xmlns:v='urn:schemas-microsoft-com:vml'>{content}</v:textbox></w:pict>"
    document.add_paragraph("Ferry")._p.append(run(shape))


def changes(document: docx.document.Document) -> None:
    paragraph = document.add_paragraph("She sails")
    for tag, text in (("moveFrom", " north"), ("del", " west"), ("moveTo", " south"), ("ins", " daily")):
        inner = f'<w:{tag} {W} w:id="1" w:author="a"><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:{tag}>'
        paragraph._p.append(parse_xml(inner))


def nested_controls(document: docx.document.Document) -> None:
    row = "<w:tr><w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc></w:tr>"
    control = "<w:sdt><w:sdtContent>{}</w:sdtContent></w:sdt>"
    table = row.format("boat") + control.format(control.format(row.format("Heron")))
    document.element.body.insert(0, parse_xml(f"<w:tbl {W}>{table}</w:tbl>"))
    block = control.replace("<w:sdt>", f"<w:sdt {W}>").format("<w:p><w:ins><w:r><w:t>Ash</w:t></w:r></w:ins></w:p>")
    document.element.body.insert(1, parse_xml(block))


@pytest.mark.parametrize(
    ("fill", "text"),
    [
        (surroundings, "The Heron sails daily.\n\n[Comment: Weekly, I think.]\n\nHarbor office\n\nDraft"),
        (text_box, "Ferry\n\nMooring\n\nHarbor"),
        (changes, "She sails south daily"),
        (nested_controls, "| boat |\n| --- |\n| Heron |\n\nAsh"),
    ],
)
def test_word_file_has_what_its_reader_sees(fill: Callable[[docx.document.Document], None], text: str) -> None:
    assert word(fill) == text


def numbered(levels: list[tuple[str, str]], paragraphs: list[tuple[int, str]], start: str = "") -> str:
    def fill(document: docx.document.Document) -> None:
        lists = document.part.numbering_part.element
        shown = "".join(
            f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/><w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/></w:lvl>'
            for at, (kind, text) in enumerate(levels)
        )
        lists.insert(0, parse_xml(f'<w:abstractNum {W} w:abstractNumId="90">{shown}</w:abstractNum>'))
        override = f'<w:lvlOverride w:ilvl="0"><w:startOverride w:val="{start}"/></w:lvlOverride>' if start else ""
        lists.append(parse_xml(f'<w:num {W} w:numId="90"><w:abstractNumId w:val="90"/>{override}</w:num>'))
        for level, text in paragraphs:
            place = f'<w:numPr {W}><w:ilvl w:val="{level}"/><w:numId w:val="90"/></w:numPr>'
            document.add_paragraph(text)._p.get_or_add_pPr().append(parse_xml(place))

    return word(fill)


def test_word_clauses_have_their_numbers() -> None:
    text = numbered([("decimal", "%1."), ("decimal", "%1.%2")], [(0, "Rent"), (0, "Boats"), (1, "Oars"), (1, "Sails")])
    assert text == "1. Rent\n\n2. Boats\n\n2.1 Oars\n\n2.2 Sails"


def test_word_clauses_have_letters_roman_numbers_and_starts() -> None:
    levels = [("upperRoman", "Part %1"), ("lowerLetter", "(%2)"), ("bullet", "•")]
    paragraphs = [(0, "Rent"), (1, "Oars"), (1, "Sails"), (2, "white"), (0, "Boats"), (1, "Hulls")]
    text = "Part IV Rent\n\n(a) Oars\n\n(b) Sails\n\nwhite\n\nPart V Boats\n\n(a) Hulls"
    assert numbered(levels, paragraphs, start="4") == text


@pytest.mark.parametrize(
    ("plain", "read"),
    [
        *(("", "The ferry leaves at nine."), ("Please use an HTML reader.", "The ferry leaves at nine.")),
        ("The ferry *leaves* at nine.", "The ferry *leaves* at nine.\n"),
    ],
)
def test_html_of_a_mail_is_read_if_its_plain_text_lacks_it(plain: str, read: str) -> None:
    message = mail(plain, From="rosa@example.org", Subject="Ferry")
    message.add_alternative("<p>The ferry <b>leaves</b> at nine.</p>", subtype="html")
    assert text_of(read_eml(message.as_bytes())).endswith(read)


def test_all_texts_of_a_mail_and_of_forwarded_mails_are_read() -> None:
    picture, inner, middle = EmailMessage(), EmailMessage(), EmailMessage()
    picture.set_content(b"x", "image", "png", disposition="inline", filename="map.png")
    inner.set_content(mail("Innermost.", From="ash@example.org", Subject="Third"))
    middle.set_content(mail("The middle one.", inner, From="edric@example.org", Subject="Second"))
    whole = mail("Look below.", picture, mail("After it."), middle, From="rosa@example.org", Subject="Ferry")
    content = read_eml(whole.as_bytes())
    names = [section.place.name for section in content.sections if section.place]
    assert names == [f"mail from {name}@example.org" for name in ("rosa", "edric", "ash")]
    parts = ("Attachment: map.png", "Look below.", "After it.", "The middle one.", "Subject: Third", "Innermost.")
    places = [text_of(content).index(text) for text in parts]
    assert places == sorted(places)


@pytest.mark.parametrize("charset", ["unknown-8bit", "x-sjis", "utf8mb4", "binary", "hex", "us-ascii", "utf-8; format"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-8-sig", "utf-16"])
def test_mail_with_an_unusable_charset_is_decoded_as_text(charset: str, encoding: str) -> None:
    head = f'From: rosa@example.org\r\nSubject: Arden\r\nContent-Type: text/plain; charset="{charset}"\r\n'
    body = "Content-Transfer-Encoding: 8bit\r\n\r\nDie Fähre fährt täglich für alle.\r\n"
    content = read_eml((head + body).encode(encoding))
    assert content.title == "Arden" and "Die Fähre fährt täglich" in text_of(content)


LEFT = [
    "the ferry to the islands was built",
    "by Rosa Quill in the spring of 1843",
    "and sailed for forty long years",
    "until she sank.",
]
RIGHT = [
    "every keeper of the light had to",
    "carry the oil up by hand, and in",
    "winter they slept next to the lamp",
    "for warmth.",
]


def columns(canvas: Canvas, *cells: list[str], alternate: bool, at: int = 740) -> None:
    """Draw lines at the places of columns; `alternate`: row by row, as some programs write them."""
    drawn_at = [
        (x, at - 14 * row, text)
        for x, lines in zip((72, 320, 440), cells, strict=False)
        for row, text in enumerate(lines)
    ]
    for x, y, text in sorted(drawn_at, key=lambda each: (-each[1], each[0])) if alternate else drawn_at:
        canvas.drawString(x, y, text)


@pytest.mark.parametrize("alternate", [True, False])
@pytest.mark.parametrize("longer", [0, 1])
def test_columns_of_a_page_are_read_one_by_one(longer: int, alternate: bool) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 780, "A heading that runs across both of the columns of this whole page, to the end")
        columns(canvas, LEFT, [*RIGHT, *["Then came the day."] * longer], alternate=alternate)

    text = text_of(read_pdf(drawn(draw)))
    assert " ".join(LEFT) in text and " ".join(RIGHT) in text and "|" not in text


@pytest.mark.parametrize("alternate", [True, False])
@pytest.mark.parametrize("lines", [(0, 4), (2, 4), (1, 3)])
@pytest.mark.parametrize("title", ["Harbor news", ""])
def test_short_columns_are_paragraphs(lines: tuple[int, int], alternate: bool, title: str) -> None:
    left, right = LEFT[slice(*lines)], RIGHT[slice(*lines)]

    def draw(canvas: Canvas) -> None:
        canvas.drawCentredString(297, 770, title)
        columns(canvas, left, right, alternate=alternate)
        canvas.drawString(72, 640, "Then came the day.")

    expected = [title, " ".join(left), " ".join(right), "Then came the day."]
    assert text_of(read_pdf(drawn(draw))).split("\n\n") == [paragraph for paragraph in expected if paragraph]


@pytest.mark.parametrize("alternate", [True, False])
def test_headings_of_columns_are_read_with_them(alternate: bool) -> None:
    def draw(canvas: Canvas) -> None:
        columns(canvas, ["The ferry"], ["The light"], alternate=alternate, at=760)
        columns(canvas, LEFT, RIGHT, alternate=alternate)

    paragraphs = text_of(read_pdf(drawn(draw))).split("\n\n")
    assert paragraphs == [f"The ferry {' '.join(LEFT)}", f"The light {' '.join(RIGHT)}"]


BOATS = [["boat", "Heron", "Egret", "Tern"], ["built", "1843", "1851", "1860"]]
BOATS_TABLE = "| boat | built |\n| --- | --- |\n| Heron | 1843 |\n| Egret | 1851 |\n| Tern | 1860 |"


@pytest.mark.parametrize("place", ["left", "right", "below"])
@pytest.mark.parametrize("alternate", [True, False])
def test_text_next_to_a_table_is_read_apart_from_it(place: str, alternate: bool) -> None:
    def draw(canvas: Canvas) -> None:
        if place == "below":
            columns(canvas, LEFT, RIGHT, alternate=alternate)
            columns(canvas, *BOATS, alternate=True, at=640)
        elif alternate:
            columns(canvas, *((LEFT, *BOATS) if place == "right" else (*BOATS, LEFT)), alternate=True)
        elif place == "right":
            columns(canvas, LEFT, alternate=False)
            columns(canvas, [], *BOATS, alternate=True)
        else:
            columns(canvas, *BOATS, alternate=True)
            columns(canvas, [], [], LEFT, alternate=False)

    paragraphs = text_of(read_pdf(drawn(draw))).split("\n\n")
    texts = {"right": [" ".join(LEFT)], "left": [" ".join(LEFT)], "below": [" ".join(LEFT), " ".join(RIGHT)]}[place]
    assert sorted(paragraphs) == sorted([*texts, BOATS_TABLE])


@pytest.mark.parametrize("rows", [1, 3])
def test_cells_of_several_lines_stay_in_their_rows(rows: int) -> None:
    """Cells of running text are columns only if no further row is below them."""

    def draw(canvas: Canvas) -> None:
        for row in range(rows):
            columns(canvas, [f"{1840 + row}"], LEFT[:3], ["9.50"], alternate=False, at=740 - 60 * row)

    text = text_of(read_pdf(drawn(draw)))
    assert text.count(f" | {' '.join(LEFT[:3])} | 9.50") == rows


def test_thin_spaces_of_a_number_are_read_as_spaces() -> None:
    assert {normalize(f"12{space}500") for space in "\u2007\u2009\u200a\u202f"} == {"12 500"}


def test_rows_of_a_table_are_not_taken_for_columns() -> None:
    rows = [
        ("Repair of the northern pier", "Paid by the town."),
        ("Oil for the old lamp", "Paid by the crew."),
        ("Sails", "None"),
    ]

    def draw(canvas: Canvas) -> None:
        for at, (left, right) in enumerate(rows):
            canvas.drawString(72, 740 - 14 * at, left)
            canvas.drawString(320, 740 - 14 * at, right)

    assert "| Repair of the northern pier | Paid by the town. |" in text_of(read_pdf(drawn(draw)))


def test_form_values_and_notes_of_a_page_are_read() -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(72, 700, "Application")
        canvas.acroForm.textfield(name="boat", value="Heron", x=72, y=600)
        canvas.acroForm.checkbox(name="paid", checked=True, x=72, y=560)
        canvas.acroForm.checkbox(name="sunk", checked=False, x=72, y=540)
        canvas.textAnnotation("Ask Rosa first.", (72, 500, 200, 550))
        canvas.showPage()
        canvas.drawString(72, 700, "Second page")

    first, second = read_pdf(drawn(draw)).sections
    assert first.text.split("\n\n") == ["Application", "boat: Heron", "paid: Yes", "[Note: Ask Rosa first.]"]
    assert second.text == "Second page"


@pytest.mark.parametrize("suffix", [".md", ".html"])
def test_pieces_of_a_long_table_have_its_header(suffix: str, tmp_path: Path) -> None:
    rows = [("boat", "built"), *((f"boat {number} of the fleet", f"{1800 + number}") for number in range(80))]
    if suffix == ".md":
        lines = [f"| {left} | {right} |" for left, right in rows]
        text = "\n".join(["# Boats", "", lines[0], "|:---|---:|", *lines[1:], "", "After the table."])
    else:
        cells = "".join(f"<tr><td>{left}</td><td>{right}</td></tr>" for left, right in rows)
        text = f"<h1>Boats</h1><table>{cells}</table><p>After the table.</p>"
    path = tmp_path / f"boats{suffix}"
    path.write_text(text)
    document = load(path)
    passages = [document.text[span.start : span.end] for span in document.spans]
    assert all("| boat | built |" in passage for passage in passages if "of the fleet" in passage)
    assert "After the table." in passages[-1] and sum("boat 79" in passage for passage in passages) == 1


@pytest.mark.parametrize(("before", "after"), [("```", "```"), ("````\n```\n```", "````"), ("~~~", "")])
def test_long_table_in_code_stays_as_it_is(before: str, after: str, tmp_path: Path) -> None:
    code = f"{before}\n| a | b |\n| --- | --- |\n" + "| x | y |\n" * 200 + after
    path = tmp_path / "code.md"
    path.write_text(code)
    assert load(path).text == code


@pytest.mark.parametrize(
    ("table", "rows"),
    [
        ("sep=;\nboat;built\nHeron;1843\n", ["boat: Heron; built: 1843"]),
        ("SEP=|\r\nboat|built\r\nHeron|1843\r\n", ["boat: Heron; built: 1843"]),
        *(
            (f"{line}\nboat;built\nHeron;1843", ["boat: Heron; built: 1843"])
            for line in ('"sep=;"', "Sep = ;", "sep=;;;")
        ),
        ("Fees of 2024\n\nboat,fee\nHeron,2\n", ["Fees of 2024", "boat: Heron; fee: 2"]),
        ("Fees,,\nboat,fee,paid\nHeron,2,no\n", ["Fees", "boat: Heron; fee: 2; paid: no"]),
        ('"a, b, c";built\n"Quill, Rosa, and Ash";"1,5"\n', ["a, b, c: Quill, Rosa, and Ash; built: 1,5"]),
        ("name;price\nHeron;1,5\nAsh;2,5\n", ["name: Heron; price: 1,5", "name: Ash; price: 2,5"]),
        ("boat\nHeron\nAsh\n", ["boat: Heron", "boat: Ash"]),
    ],
)
def test_table_has_its_delimiter_and_header(table: str, rows: list[str]) -> None:
    assert read_table(table.encode()).sections[0].text.split("\n") == rows


def test_title_of_a_notebook_is_a_heading_of_its_text() -> None:
    code = {"cell_type": "code", "source": ["# load the data\n", "x = 1"], "outputs": []}
    text = {"cell_type": "markdown", "source": "```\n# a comment\n```\n\n# Harbor dues"}
    assert read_notebook(json.dumps({"cells": [code, text]}).encode()).title == "Harbor dues"
    assert read_notebook(json.dumps({"cells": [code]}).encode()).title is None


def test_notebook_of_the_third_format_is_read() -> None:
    heading = {"cell_type": "heading", "level": 1, "source": ["Harbor dues"]}
    code = {"cell_type": "code", "language": "python", "input": ["x = 1\n", "y = 2"], "outputs": []}
    old = {"metadata": {"name": "dues"}, "nbformat": 3, "worksheets": [{"cells": [heading, code]}]}
    content = read_notebook(json.dumps(old).encode())
    assert (content.title, text_of(content)) == ("Harbor dues", "# Harbor dues\n\n```python\nx = 1\ny = 2\n```")


def test_book_has_chapters_outside_its_folder_and_names_missing_ones() -> None:
    package = """<package xmlns="http://www.idpf.org/2007/opf"><manifest><item id="a" href="../text/one.xhtml#top"/>
    <item id="b" href="gone.xhtml"/></manifest><spine><itemref idref="a"/><itemref idref="b"/></spine></package>"""
    container = '<container><rootfiles><rootfile full-path="inner/book.opf"/></rootfiles></container>'
    entries = {"META-INF/container.xml": container, "inner/book.opf": package}
    entries["text/one.xhtml"] = "<body><h1>One</h1><p>Ferries.</p><aside>A note.</aside><img alt='A map'/></body>"
    text = text_of(read_epub(zipped(entries)))
    assert all(part in text for part in ("Ferries.", "A note.", "A map", "missing: gone.xhtml"))


TITLES = [("text/one.xhtml", "The ferry"), ("text/two.xhtml#dock", "The dock"), ("text/two.xhtml#pier", "The pier")]
LINKS = "".join(f'<li><a href="{href}">{title}</a></li>' for href, title in TITLES)
POINTS = "".join(
    f'<navPoint><navLabel><text>{title}</text></navLabel><content src="{href}"/></navPoint>' for href, title in TITLES
)
CONTENTS = {
    'href="nav.xhtml" properties="nav"': f'<body><nav epub:type="toc"><ol>{LINKS}</ol></nav></body>',
    'href="toc.ncx" media-type="application/x-dtbncx+xml"': f"<ncx><docTitle/><navMap>{POINTS}</navMap></ncx>",
}
CHAPTERS = {
    "one": "<p>I</p><p>It sails.</p>",
    "more": "<p>It returns.</p>",
    "two": "<p id='dock'>II</p><p>It is dry.</p><h4><a id='pier'></a>III</h4><p>It is long.</p>",
}


def made_book(contents: str, more: dict[str, str] | None = None) -> bytes:
    items = f'<item id="nav" {contents}/>' + "".join(f'<item id="{id}" href="text/{id}.xhtml"/>' for id in CHAPTERS)
    order = "".join(f'<itemref idref="{id}"/>' for id in CHAPTERS)
    entries = {
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="in/book.opf"/></rootfiles></container>',
        "in/book.opf": f"""<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>
        <spine>{order}</spine></package>""",
        f"in/{contents.split(chr(34))[1]}": CONTENTS[contents],
    }
    texts = {f"in/text/{id}.xhtml": f"<body>{text}</body>" for id, text in CHAPTERS.items()}
    return zipped({**entries, **texts, **(more or {})})


@pytest.mark.parametrize("contents", CONTENTS)
def test_chapter_has_its_place_from_the_table_of_contents(contents: str) -> None:
    sections = read_epub(made_book(contents)).sections
    places = {each.text.split()[-1]: each.place.name for each in sections if each.place and each.text.strip()}
    ferry = dict.fromkeys(["sails.", "returns."], "chapter “The ferry”")
    assert places == {**ferry, "dry.": "chapter “The dock”", "long.": "chapter “The pier”"}


@pytest.mark.parametrize(
    ("algorithm", "is_read"), [("http://www.idpf.org/2008/embedding", True), ("aes128-cbc", False)]
)
def test_protected_book_is_refused_by_its_cause(algorithm: str, is_read: bool) -> None:
    encryption = (
        f'<encryption><EncryptedData><enc:EncryptionMethod Algorithm="{algorithm}"/></EncryptedData></encryption>'
    )
    book = made_book(next(iter(CONTENTS)), {"META-INF/encryption.xml": encryption})
    if is_read:
        assert "It sails." in text_of(read_epub(book))
    else:
        with pytest.raises(DocumentError, match="protected against copying"):
            read_epub(book)


def test_printed_page_is_cited_with_the_page_of_the_file(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for number in range(1, 7):
            canvas.drawString(72, 700, f"Page {number} of the boats.")
            canvas.showPage()

    writer = PdfWriter(clone_from=PdfReader(BytesIO(drawn(draw))))
    writer.set_page_label(0, 3, style="/r")
    writer.set_page_label(4, 5, style="/D")
    writer.write(tmp_path / "boats.pdf")
    document = load(tmp_path / "boats.pdf")
    (span,) = document.spans
    at = [document.text.index(f"Page {number}") for number in (4, 5)]
    assert span.location == "p. i–2, 1st–6th page"
    assert [quote_location(span.places, each, each + 6) for each in at] == ["p. iv, 4th page", "p. 1, 5th page"]


@pytest.mark.parametrize("declared", ["utf-8", "ascii", "nobody-knows"])
def test_wrong_charset_of_a_page_is_not_obeyed(declared: str) -> None:
    html = f"<meta charset='{declared}'><p>Die Größe der Fähre ist schön für Müller.</p>"
    assert "Die Größe der Fähre ist schön für Müller." in text_of(read_html(html.encode("latin-1")))


def test_captions_and_alternative_texts_of_pictures_are_read() -> None:
    prose = "<p>" + "The harbor of the town is described in this long text. " * 12 + "</p>"
    figure = "<figure><img src='b' alt='The pier in winter'><figcaption>Drawn by Ash</figcaption></figure>"
    html = (
        f"<article><h1>Harbor</h1>{prose}<p>See <img src='a' alt='a map of Arden'> here.</p>{figure}{prose}</article>"
    )
    text = text_of(read_html(html.encode()))
    assert all(part in text for part in ("a map of Arden", "The pier in winter", "Drawn by Ash"))


def test_uncertain_encoding_is_a_remark(tmp_path: Path) -> None:
    path = tmp_path / "city.txt"
    path.write_bytes("北京".encode("gb2312"))
    assert "uncertain" in load(path).note
    certain = ("灯塔由老船长建造，镇上的人都认识他。".encode("gb2312"), "Fähre".encode())
    assert [*map(encoding_doubt, certain)] == ["", ""]


def test_quote_has_the_page_or_row_of_its_own(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for number in range(1, 5):
            canvas.drawString(72, 700, f"Boat {number} is old.")
            canvas.showPage()

    (tmp_path / "boats.pdf").write_bytes(drawn(draw))
    book = openpyxl.Workbook()
    for row in (["boat", "built"], *([f"Boat {number} is old.", number] for number in range(2, 9))):
        book.worksheets[0].append(row)
    book.save(tmp_path / "boats.xlsx")
    found = {}
    for name in ("boats.pdf", "boats.xlsx"):
        document = load(tmp_path / name)
        (span,) = document.spans
        at = document.text.index("Boat 3 is old.") - span.start
        found[name] = span.location, quote_location(span.places, at, at + 14)
    assert found == {"boats.pdf": ("p. 1–4", "p. 3"), "boats.xlsx": ("Sheet, rows 2–8", "Sheet, row 3")}
