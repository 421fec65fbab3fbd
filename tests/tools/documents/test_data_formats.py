"""Data, subtitles, appointments, contacts, and files of older programs: their text with its places."""

import json
import stat
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import pytest
from made_files import drawn, mail, office, rezipped, text_of
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject

from sleuth.tools.documents.corpus import is_corpus
from sleuth.tools.documents.file_list import list_files
from sleuth.tools.documents.formats.book_formats import read_eml, read_mbox, read_msg
from sleuth.tools.documents.formats.calendar_formats import read_calendar, read_contacts
from sleuth.tools.documents.formats.content import Content, join_sections
from sleuth.tools.documents.formats.data_formats import read_json, read_json_lines, read_subtitles, read_xml
from sleuth.tools.documents.formats.old_office_formats import read_xls
from sleuth.tools.documents.formats.plain_formats import read_asciidoc, read_rst
from sleuth.tools.documents.loading import load
from sleuth.tools.documents.readers import FORMATS
from sleuth.tools.errors import DocumentError

HEADERS = {"From": "rosa@x.org", "Subject": "Ferry"}
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def places(content: Content) -> list[tuple[str, str]]:
    """Each section with its place."""
    return [(each.place.name if each.place else "", each.text) for each in content.sections]


def test_values_of_json_have_their_names_and_items_their_places() -> None:
    boats = [{"name": "Heron", "crew": [{"name": "Ada"}]}, {"name": "Ash", "built": 1851, "sunk": None}]
    value = {"title": "Harbor", "office": {"city": "Varn", "open": True, "days": ["Mon", "Tue"]}, "boats": boats}
    content = read_json(json.dumps(value).encode())
    assert content.title == "Harbor"
    assert places(content) == [
        ("", "title: Harbor\noffice.city: Varn\noffice.open: true\noffice.days: Mon, Tue"),
        ("boats, item", "name: Heron\ncrew.1.name: Ada"),
        ("boats, item", "name: Ash\nbuilt: 1851"),
    ]
    assert [each.place.first for each in content.sections if each.place] == [1, 2]


@pytest.mark.parametrize("read", [read_json, read_json_lines])
def test_lines_of_json_are_read_line_by_line(read: Callable[[bytes], Content]) -> None:
    content = read('{"boat": "Grey\u2028Heron"}\n\n{"boat": "Ash"}\n'.encode())
    assert places(content) == [("line", "boat: Grey\u2028Heron"), ("line", "boat: Ash")]
    assert [each.place.first for each in content.sections if each.place] == [1, 3]


def test_lines_of_other_objects_are_no_corpus(tmp_path: Path) -> None:
    for name, line in (("other", {"question": "Who?"}), ("corpus", {"id": "a", "text": "Ada."})):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    (tmp_path / "broken.jsonl").write_text("{")
    found = {name: is_corpus(tmp_path / f"{name}.jsonl") for name in ("other", "corpus", "broken", "gone")}
    assert found == {"other": False, "corpus": True, "broken": True, "gone": True}
    assert load(tmp_path / "other.jsonl").text == "question: Who?"


ORDERS = """<?xml version="1.0"?><!DOCTYPE orders [<!ENTITY firm "Quill and Ash">]><orders xmlns="urn:o">
<order id="5"><customer>&firm;</customer><item sku="1" name="Rope"/><price currency="EUR">12</price></order>
<order id="6"><customer>Edric</customer></order><note>Some <b>mixed</b> text.</note></orders>"""


def test_elements_of_xml_have_their_names_and_attributes() -> None:
    assert text_of(read_xml(ORDERS.encode())).split("\n\n") == [
        "order (id: 5)\ncustomer: Quill and Ash\nitem (sku: 1; name: Rope)\nprice: 12 (currency: EUR)",
        "order (id: 6)\ncustomer: Edric",
        "Some mixed text.",
    ]


RSS = """<rss><channel><title>News</title><item><title>The ferry</title><link>https://a.example/1</link>
<pubDate>Mon, 02 Mar 2026 10:00:00 GMT</pubDate><category>boats</category>
<description>&lt;p&gt;It &lt;b&gt;sails&lt;/b&gt;.&lt;/p&gt;</description></item></channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>News</title><entry><title>The ferry</title>
<link href="https://a.example/1"/><updated>Mon, 02 Mar 2026 10:00:00 GMT</updated><category term="boats"/>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>It <b>sails</b>.</p></div></content></entry>
</feed>"""


@pytest.mark.parametrize("feed", [RSS, ATOM])
def test_entries_of_a_feed_are_read(feed: str) -> None:
    content = read_xml(feed.encode())
    date = "Mon, 02 Mar 2026 10:00:00 GMT"
    entry = f"## The ferry\nDate: {date}\nLink: https://a.example/1\nTags: boats\n\nIt sails."
    assert (content.title, places(content)) == ("News", [("entry “The ferry”", entry)])


SRT = """1
00:00:01,000 --> 00:00:03,000
<i>The ferry</i> was built

2
00:00:03,500 --> 00:00:05,000
{\\an8}by Ada in 1843.

3
01:02:03,000 --> 01:02:05,000
It sank.
"""
VTT = """WEBVTT

NOTE not shown

00:01.000 --> 00:03.000 align:start
The ferry was built

next
00:03.500 --> 00:05.000
The ferry was built
by <c.x>Ada</c> in 1843.

01:02:03.000 --> 01:02:05.000
It sank.
"""


@pytest.mark.parametrize(("name", "text"), [("a.srt", SRT), ("a.vtt", VTT)])
def test_sentences_of_subtitles_have_their_times(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    document = load(tmp_path / name)
    assert document.text == "The ferry was built by Ada in 1843.\n\nIt sank."
    assert [span.location for span in document.spans] == ["0:00:01–1:02:03"]


def test_speaker_of_a_subtitle_is_named() -> None:
    (section,) = read_subtitles(b"WEBVTT\n\n00:01.000 --> 00:03.000\n<v Ada Brask>Hello.\n").sections
    assert section.text == "Ada Brask: Hello."


EVENT = """BEGIN:VCALENDAR
BEGIN:VEVENT
UID:1
SUMMARY:Harbor\\, meet
 ing
DTSTART;TZID=Europe/Berlin:20260302T100000
DTEND;TZID=Europe/Berlin:20260302T113000
LOCATION:Room 5\\; Mill Lane
ORGANIZER;CN="Brask, Ada":mailto:ada@x.org
ATTENDEE;PARTSTAT=ACCEPTED;CN=Edric:MAILTO:edric@x.org
RRULE:FREQ=WEEKLY;BYDAY=MO;UNTIL=20260601T000000Z
DESCRIPTION:Bring oil.\\nAnd rope.
BEGIN:VALARM
DESCRIPTION:An alarm
END:VALARM
END:VEVENT
END:VCALENDAR
"""
SHOWN = """## Harbor, meeting
Start: 2026-03-02 10:00 (Europe/Berlin)
End: 2026-03-02 11:30 (Europe/Berlin)
Repeats: weekly, byday MO, until 2026-06-01 00:00 (UTC)
Place: Room 5; Mill Lane
Organizer: Brask, Ada <ada@x.org>
People: Edric <edric@x.org> (accepted)

Bring oil.
And rope."""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_appointment_has_its_time_place_and_people(end: str) -> None:
    content = read_calendar(EVENT.replace("\n", end).encode())
    assert places(content) == [("appointment “Harbor, meeting”, 2026-03-02", SHOWN)]
    assert (content.title, content.date) == ("Harbor, meeting", "2026-03-02")


def test_last_day_and_status_of_an_appointment_are_shown() -> None:
    dates = "DTSTART;VALUE=DATE:20260503\nDTEND;VALUE=DATE:20260505\nSTATUS:CANCELLED"
    event = f"BEGIN:VCALENDAR\nBEGIN:VEVENT\nSUMMARY:Fair\n{dates}\nEND:VEVENT\nEND:VCALENDAR"
    assert text_of(read_calendar(event.encode())) == ("## Fair\nStatus: cancelled\nStart: 2026-05-03\nEnd: 2026-05-04")


CARDS = """BEGIN:VCARD
VERSION:3.0
N:Brask;Ada;;Dr.;
FN:Dr. Ada Brask
ORG:Harbor Office;Dues
item1.EMAIL;type=INTERNET;type=WORK:ada@x.org
TEL;TYPE="voice,cell":+49 1
ADR;TYPE=WORK:;;12 Mill Lane;Sennick;;123;Varn
BDAY:19800102
PHOTO;ENCODING=b;TYPE=JPEG:/9j/4AAQ
 SkZJRg==
END:VCARD
BEGIN:VCARD
VERSION:2.1
N;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=
=BCrgen
TEL;HOME:5
END:VCARD
"""


def test_contacts_are_read_in_all_versions() -> None:
    assert places(read_contacts(CARDS.encode())) == [
        (
            "contact “Dr. Ada Brask”",
            "## Dr. Ada Brask\nOrganization: Harbor Office, Dues\nEmail (work): ada@x.org\nPhone (cell): +49 1\n"
            "Address (work): 12 Mill Lane, Sennick, 123, Varn\nBirthday: 1980-01-02",
        ),
        ("contact “Jürgen Müller”", "## Jürgen Müller\nPhone (home): 5"),
    ]


def test_titles_of_restructured_text_and_asciidoc_are_headings() -> None:
    rst = read_rst(b"=====\nBoats\n=====\n\nCode::\n\n    # none\n\nOld\n---\nText\n\nOlder\n~~~~~\nEnd\n\nNew\n---\n")
    assert text_of(rst) == "# Boats\n\nCode::\n\n    # none\n\n## Old\nText\n\n### Older\nEnd\n\n## New\n"
    adoc = read_asciidoc(b"= Boats\n\n== Old ==\n\n----\n= none\n# none\n----\n\n=== Older\n")
    assert text_of(adoc) == "# Boats\n\n## Old\n\n```\n= none\n# none\n```\n\n### Older\n"
    assert (rst.title, adoc.title) == ("Boats", "Boats")


KINDS = {
    ".docm": (".docx", b"ms-word.document.macroEnabled"),
    ".dotx": (".docx", b"openxmlformats-officedocument.wordprocessingml.template"),
    ".dotm": (".docx", b"ms-word.template.macroEnabledTemplate"),
    ".pptm": (".pptx", b"ms-powerpoint.presentation.macroEnabled"),
    ".ppsx": (".pptx", b"openxmlformats-officedocument.presentationml.slideshow"),
    ".ppsm": (".pptx", b"ms-powerpoint.slideshow.macroEnabled"),
    ".potx": (".pptx", b"openxmlformats-officedocument.presentationml.template"),
    ".xlsm": (".xlsx", b"ms-excel.sheet.macroEnabled"),
    ".xltx": (".xlsx", b"openxmlformats-officedocument.spreadsheetml.template"),
}


@pytest.mark.parametrize("suffix", KINDS)
def test_files_with_macros_and_templates_are_read(suffix: str, tmp_path: Path) -> None:
    plain, kind = KINDS[suffix]
    usual = FORMATS[plain][0].removeprefix("application/vnd.").encode() + b".main+xml"
    made = office(plain, "Heron")
    file = rezipped(made, lambda _, data: data.replace(usual, kind + b".main+xml"))
    assert file != rezipped(made, lambda _, data: data), "it has the other type"
    (tmp_path / f"a{suffix}").write_bytes(file)
    assert list_files([tmp_path])[0][0].path.suffix == suffix
    assert "Heron" in load(tmp_path / f"a{suffix}").text


@pytest.mark.parametrize(
    ("suffix", "text"),
    [
        (".xls", "Name;Town\nAda;Varn\n"),
        (".xls", "<html><table><tr><td>Name</td></tr><tr><td>Ada Varn</td></tr></table></html>"),
        (".xls", "<?xml version='1.0'?><Workbook><Data>Ada Varn</Data></Workbook>"),
        (".doc", r"{\rtf1 Ada Varn\par}"),
        (".doc", "<html><body><p>Ada Varn</p></body></html>"),
        (".doc", "Date: Mon, 2 Mar 2026 10:00:00 +0000\nMIME-Version: 1.0\nContent-Type: text/html\n\n<p>Ada Varn</p>"),
        (".doc", "Ada Varn"),
    ],
)
def test_other_formats_under_an_old_suffix_are_read(suffix: str, text: str, tmp_path: Path) -> None:
    (tmp_path / f"a{suffix}").write_text(text)
    found = load(tmp_path / f"a{suffix}").text
    assert "Ada" in found and "Varn" in found


@pytest.mark.parametrize("name", ["fares.xls", "fares.xlsb"])
def test_old_and_binary_workbooks_are_read_with_their_values(name: str) -> None:
    pytest.importorskip("python_calamine", reason="the extra `loaders`")
    content = read_xls(Path(__file__).with_name(name).read_bytes())
    assert "| Heron | 1999-03-04 | 2.5 | True | 3 |" in text_of(content)
    assert "| Ash | 1999-03-04 10:30:00 | 0.3 | False | 1000000 |" in text_of(content)
    assert text_of(content).count("| north |") == (2 if name.endswith(".xls") else 0)  # merged cells
    assert "## Hid (hidden)" in text_of(content)
    assert join_sections(content.sections)[1][0][1].name == "Fares, rows"


@pytest.mark.parametrize(("suffix", "target"), [(".doc", ".docx"), (".ppt", ".pptx")])
def test_old_files_are_converted_by_libreoffice_or_name_it(
    suffix: str, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"a{suffix}").write_bytes(OLE + bytes(99))
    (tmp_path / f"converted{target}").write_bytes(office(target, "Heron"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DocumentError, match=f"LibreOffice reads. Install it .*save the file as {target}"):
        load(tmp_path / f"a{suffix}")
    program = tmp_path / "soffice"
    program.write_text(f"""#!/bin/sh
        while [ "$1" != --outdir ]; do shift; done
        /bin/mkdir "$2" && /bin/cp {tmp_path}/converted{target} "$2/a{target}"
    """)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert "Heron" in load(tmp_path / f"a{suffix}").text
    program.write_text("#!/bin/sh\nexit 1\n")
    with pytest.raises(DocumentError, match="protected with a password, or damaged"):
        load(tmp_path / f"a{suffix}")


def test_attachments_of_a_mail_are_read_with_their_places(tmp_path: Path) -> None:
    message, inner = mail("See below.", **HEADERS), mail("See below.", **HEADERS)
    inner.add_attachment(b"Of the inner mail.", "text", "markdown", filename="inner.md")
    report = drawn(lambda page: page.drawString(72, 700, "The Heron is old."))
    message.add_attachment(report, "application", "pdf", filename="report.pdf")
    message.add_attachment(b"boat,fee\nAsh,2\n", "text", "csv", filename="fees.csv")
    message.add_attachment(b"%PDF-broken", "application", "pdf", filename="broken.pdf")
    message.add_attachment(b"\x89PNG", "image", "png", filename="map.png")
    message.add_attachment(inner)
    (tmp_path / "a.eml").write_bytes(message.as_bytes())
    document = load(tmp_path / "a.eml")
    found = {document.text[span.start : span.end]: span.location for span in document.spans}
    assert found["The Heron is old."] == "attachment report.pdf, p. 1"
    assert found["boat: Ash; fee: 2"] == "attachment fees.csv"
    assert found["Of the inner mail."] == "attachment inner.md"
    assert "Attachment: map.png" in document.text
    assert document.note.startswith("not read: broken.pdf is not a .pdf file, or is damaged")


def test_appointment_of_an_invitation_is_read_with_its_text() -> None:
    message = mail("See below.", **HEADERS)
    message.add_alternative("<p>See below.</p>", subtype="html")
    message.add_alternative(EVENT, subtype="calendar")
    text = text_of(read_eml(message.as_bytes()))
    assert "See below." in text and SHOWN in text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_mails_in_utf16_are_read(encoding: str) -> None:
    text = "From: rosa@x.org\nSubject: Ferry\n\nIt sails to Arden.\n"
    assert "It sails" in text_of(read_eml(text.encode(encoding)))
    assert "It sails" in text_of(read_mbox(f"From rosa@x.org Tue Mar  4 10:00:00 2025\n{text}".encode(encoding)))


@pytest.mark.parametrize("has_xfa", [True, False])
def test_form_that_only_adobe_reader_shows_is_named(has_xfa: bool, tmp_path: Path) -> None:
    writer = PdfWriter(clone_from=PdfReader(BytesIO(drawn(lambda page: page.drawString(72, 700, "Please wait...")))))
    if has_xfa:
        form = DictionaryObject({NameObject("/XFA"): ArrayObject(), NameObject("/Fields"): ArrayObject()})
        writer.root_object[NameObject("/AcroForm")] = form
    writer.write(tmp_path / "a.pdf")
    if has_xfa:
        with pytest.raises(DocumentError, match=r"is a form \(XFA\) that only Adobe Reader shows"):
            load(tmp_path / "a.pdf")
    else:
        assert load(tmp_path / "a.pdf").text == "Please wait..."


def test_outlook_mail_of_rich_text_alone_has_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oxmsg.Message.body", None)
    monkeypatch.setattr("oxmsg.Message.html_body", None)
    content = read_msg(Path(__file__).with_name("ferry.msg").read_bytes())
    assert "Rich Text" in content.note and ".eml" in content.note


def test_mail_attached_to_an_outlook_mail_is_read(tmp_path: Path) -> None:
    path = tmp_path / "forwarded.msg"
    path.write_bytes(Path(__file__).with_name("forwarded.msg").read_bytes())
    loaded = load(path)
    places = [span.location for span in loaded.spans]
    assert loaded.title == "Fw: The ferry" and loaded.author == '"Edric Gannow" <edric@example.org>'
    assert "To: Edric Gannow" in loaded.text and "Subject: The ferry\nAttachment: fares.txt" in loaded.text
    assert "The ferry to Arden leaves at nine." in loaded.text
    assert "The crossing costs three marks." in loaded.text and "attachment fares.txt" in str(places)
