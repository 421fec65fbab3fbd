"""Text out of books, mails and notebooks."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from io import BytesIO
from mimetypes import guess_extension
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag
from zipfile import ZipFile

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.calendar_formats import read_calendar
from sleuth.tools.documents.formats.content import Content, Section, damage_of, office_extra
from sleuth.tools.documents.formats.html_format import (
    HIDDEN,
    MIN_KEPT_SHARE,
    decode_html,
    html_title,
    parse_html,
    whole_page,
)
from sleuth.tools.documents.formats.plain_formats import first_heading
from sleuth.tools.errors import DocumentError
from sleuth.tools.places import Place
from sleuth.tools.text.encodings import decode, without_bom
from sleuth.tools.text.normalization import single_line, title_from

if TYPE_CHECKING:
    from bs4 import BeautifulSoup
    from lxml.etree import _Element as Element

_OPF = "{http://www.idpf.org/2007/opf}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
_ENCRYPTION = "META-INF/encryption.xml"
_PROTECTED = re.compile(
    r"EncryptionMethod(?:(?!EncryptionMethod)[^>])*Algorithm=[\"'](?!http://(?:www\.idpf\.org/2008/embedding|ns\.adobe\.com/pdf/enc#RC))"
)
"""An encryption of anything but fonts."""
HEADERS = ("From", "To", "Cc", "Date", "Subject")
_ATTACHED_MAIL, _PROPERTIES = "__substg1.0_3701000D", "__properties_version1.0"
"""Names in an Outlook mail."""


def read_epub(data: bytes) -> Content:
    """Return the chapters of a book in reading order."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    with open_zip(data, kind="an EPUB book") as archive:
        container = etree.fromstring(archive.read("META-INF/container.xml"), parser)
        (path, *_) = container.xpath("//*[local-name()='rootfile']/@full-path")
        package = etree.fromstring(archive.read(path), parser)
        if _PROTECTED.search(archive.read(_ENCRYPTION).decode() if _ENCRYPTION in archive.namelist() else ""):
            raise DocumentError("is protected against copying (DRM). Get it without, or leave it out.")
        chapters = list(_chapters(archive, PurePosixPath(path), package))
    title, date = (package.findtext(f".//{_DUBLIN_CORE}{name}") for name in ("title", "date"))
    authors, tags = ([element.text for element in package.iter(_DUBLIN_CORE + name)] for name in ("creator", "subject"))
    return Content(title_from(title), chapters, authors, date, tags)


def _chapters(archive: ZipFile, package_path: PurePosixPath, package: "Element") -> Iterator[Section]:
    """Yield the chapters; one that the table of contents alone names begins at the element to which it refers."""
    files = {item.get("id"): _name_in(package_path, item.get("href", "")) for item in package.iter(f"{_OPF}item")}
    entries = _table_of_contents(archive, package_path, package)
    names, title = set(archive.namelist()), ""
    for number, reference in enumerate(package.iter(f"{_OPF}itemref"), start=1):
        name = files.get(reference.get("idref"), "")
        if name in names:
            page = parse_html(decode_html(archive.read(name)))
            heading = page.find(["h1", "h2", "h3"])
            titles = entries.get(name, {})
            title = (
                title_from(heading.get_text(" ") if heading else None) or titles.get("") or html_title(page) or title
            )
            for at, text in _parts_at(page, list(titles)):
                title = titles.get(at, title) if at else title
                yield Section(text, Place(f"chapter “{title}”") if title else Place("chapter", number))
        elif name:
            yield Section(
                f"(The file of this chapter is missing: {PurePosixPath(name).name})", Place("chapter", number)
            )


def _name_in(file: PurePosixPath, href: str) -> str:
    """Return the name in the archive of the file to which a file refers."""
    path = unquote(urldefrag(href).url)
    return normpath(str(file.parent / path)).lstrip("/") if path else ""


def _table_of_contents(archive: ZipFile, package_path: PurePosixPath, package: "Element") -> dict[str, dict[str, str]]:
    """Return the titles of chapters by file and, within it, by the id of the element at which they begin."""
    contents: dict[str, dict[str, str]] = {}
    for item in package.iter(f"{_OPF}item"):
        name = _name_in(package_path, item.get("href", ""))
        is_toc = "nav" in item.get("properties", "").split() or item.get("media-type") == "application/x-dtbncx+xml"
        if not is_toc or name not in archive.namelist() or contents:
            continue
        page = parse_html(decode_html(archive.read(name)))
        links = [(str(link["href"]), link.get_text(" ")) for nav in page("nav")[:1] for link in nav("a", href=True)]
        for point in page("navpoint"):
            target, label = point.find("content"), point.find("text")
            links += [(str(target["src"]), label.get_text(" "))] if target and label else []
        for href, label_text in links:
            if title := title_from(label_text):
                titles = contents.setdefault(_name_in(PurePosixPath(name), href), {})
                titles.setdefault(urldefrag(href).fragment, title)
    return contents


def _parts_at(page: "BeautifulSoup", ids: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a page that begin at the elements with these ids, after that before the first one."""
    for number, id_ in enumerate(ids):
        if target := page.find(id=id_) or page.find("a", attrs={"name": id_}) if id_ else None:
            (target.find_parent(["h1", "h2", "h3", "h4", "h5", "h6", "p"]) or target).insert_before(
                f"\ue000{number}\ue001"
            )
    before, *parts = re.split("\ue000(\\d+)\ue001", whole_page(page, leave_out=HIDDEN))
    yield "", before
    yield from ((ids[int(number)], text) for number, text in zip(parts[::2], parts[1::2], strict=True))


ReadAttachment = Callable[[str, bytes], Sequence[Section]]
"""A reader of a file by its name, empty for one of a type that is not read. It raises DocumentError."""


def _leave_out(_name: str, _data: bytes) -> Sequence[Section]:
    return ()


def read_eml(data: bytes, read_attachment: ReadAttachment = _leave_out) -> Content:
    """Return the headers and the text of a mail, of the mails in it and of its attachments."""
    mail = message_from_bytes(without_bom(data), policy=policy.default)
    about = _headers(mail)
    if not about:
        raise DocumentError("is not a mail: it has no sender, date or subject. Leave it out.")
    unread: list[str] = []
    sections = list(_mail_sections(mail, read_attachment, unread))
    return _mail_content(about, sections, unread, str(mail["Keywords"] or ""))


def read_mbox(data: bytes, read_attachment: ReadAttachment = _leave_out) -> Content:
    """Return the mails of a mailbox, each as `read_eml` returns it."""
    mails = re.split(rb"(?:\A|\r?\n\r?\n)From [^\r\n]*\r?\n", without_bom(data))
    contents, unread = list[Content](), 0
    for mail in filter(bytes.strip, mails):
        try:
            with damage_of("a mail"):
                contents.append(read_eml(re.sub(rb"(?m)^>(>*From )", rb"\1", mail), read_attachment))
        except DocumentError:
            unread += 1
    if not contents:
        raise DocumentError("is not a mailbox in the mbox format. Leave it out.")
    notes = [f"mails that cannot be read: {unread}"] if unread else []
    notes += [content.note for content in contents if content.note]
    return Content(None, [section for content in contents for section in content.sections], note="; ".join(notes[:9]))


def _headers(mail: MIMEPart) -> dict[str, str]:
    return {name: single_line(str(mail[name])) for name in HEADERS if mail[name]}


def _mail_sections(mail: MIMEPart, read_attachment: ReadAttachment, unread: list[str]) -> Iterator[Section]:
    """Yield a mail, its attachments and the mails that it forwards; add the attachments that cannot be read."""
    parts = list(_parts(mail))
    texts = [_text(part) for part in parts if _is_shown(part)]
    attached = [(_file_name(part), _payload(part)) for part in parts if not _is_shown(part)]
    forwarded = [mail for part in parts if part.get_content_type() == "message/rfc822" for mail in part.iter_parts()]
    yield from _mail(_headers(mail), "\n\n".join(filter(str.strip, texts)), [name for name, _ in attached])
    yield from _attachments(attached, read_attachment, unread)
    for inner in forwarded:
        yield from _mail_sections(inner, read_attachment, unread)


def _attachments(
    files: Sequence[tuple[str, bytes]], read_attachment: ReadAttachment, unread: list[str]
) -> Iterator[Section]:
    """Yield the texts of files, whose places begin with their names."""
    for name, data in files:
        before = Place(f"attachment {name}")
        try:
            for section in read_attachment(name, data) if data else ():
                place = section.place
                inner = replace(place, name=f"{before.name}, {place.name}".rstrip(", ")) if place else before
                yield Section(section.text, inner)
        except DocumentError as error:
            unread.append(f"{name} {error}")


def _file_name(part: MIMEPart) -> str:
    return part.get_filename() or f"without a name{guess_extension(part.get_content_type()) or ''}"


def _payload(part: MIMEPart) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def _parts(part: MIMEPart) -> Iterator[MIMEPart]:
    """Yield the parts that a mail program shows or lists, of alternatives the best one and the appointment."""
    if part.get_content_type() == "multipart/alternative":
        choices = list(part.iter_parts()) or [EmailMessage()]
        appointments = [choice for choice in choices if choice.get_content_type() == "text/calendar"]
        yield from _best_alternative([choice for choice in choices if choice not in appointments] or appointments[:1])
        yield from appointments if len(choices) > len(appointments) else ()
    elif part.get_content_maintype() == "multipart":
        for inner_part in part.iter_parts():
            yield from _parts(inner_part)
    else:
        yield part


def _best_alternative(parts: list[MIMEPart]) -> list[MIMEPart]:
    """Return the parts of the first alternative, or of a later one if it lacks many of the words of the last one."""
    choices = [list(_parts(part)) for part in parts]
    texts = (" ".join(_text(part) for part in choice if _is_shown(part)) for choice in choices)
    words = [set(re.findall(r"\w+", text)) for text in texts]
    best = next(filter(None, reversed(words)), set[str]())
    return next(
        choice for choice, some in zip(choices, words, strict=True) if len(some & best) >= MIN_KEPT_SHARE * len(best)
    )


def _is_shown(part: MIMEPart) -> bool:
    return part.get_content_type() in ("text/plain", "text/html", "text/calendar") and not part.is_attachment()


def _text(part: MIMEPart) -> str:
    data, charset = _payload(part), part.get_content_charset()
    if part.get_content_subtype() == "calendar":
        with suppress(DocumentError), damage_of("a calendar"):  # a part without an appointment
            return "\n\n".join(section.text for section in read_calendar(data, charset=charset).sections)
    text = decode(data, declared=charset)
    return whole_page(parse_html(text), leave_out=HIDDEN) if part.get_content_subtype() == "html" else text


def read_msg(data: bytes, read_attachment: ReadAttachment = _leave_out) -> Content:
    """Return the headers and the text of an Outlook mail, of its attachments and of the mails attached to it."""
    with office_extra(".msg", ".eml"):
        from oxmsg import Message
    mail: Any = Message.load(BytesIO(data))
    unread: list[str] = []
    sections = list(_outlook_sections(mail, read_attachment, unread))
    return _mail_content(_outlook_headers(mail), sections, unread)


def _outlook_headers(mail: Any) -> dict[str, str]:  # noqa: ANN401 - python-oxmsg is untyped
    to = "; ".join(f"{recipient.name} <{recipient.email_address}>" for recipient in mail.recipients)
    date = mail.sent_date.isoformat(" ", "minutes") if mail.sent_date else ""
    headers = {"From": mail.sender, "To": to, "Date": date, "Subject": mail.subject}
    return {name: single_line(value) for name, value in headers.items() if value}


def _outlook_sections(mail: Any, read_attachment: ReadAttachment, unread: list[str]) -> Iterator[Section]:  # noqa: ANN401
    """Yield a mail, its attachments and the mails attached to it, as `_mail_sections` does."""
    from oxmsg import Message

    text = mail.body or (whole_page(parse_html(mail.html_body), leave_out=HIDDEN) if mail.html_body else "")
    if not text:
        unread.append("its text, if it has any, is Rich Text: save the mail as .eml or .pdf in Outlook")
    attached = [(file.file_name or "without a name", file.file_bytes or b"") for file in mail.attachments]
    yield from _mail(_outlook_headers(mail), text, [name for name, _ in attached])
    yield from _attachments(attached, read_attachment, unread)
    for inner in (inner for storage in mail._storage.iter_attachment_storages() for inner in storage.storages):
        if inner.name == _ATTACHED_MAIL:
            yield from _outlook_sections(Message(_as_file(inner)), read_attachment, unread)


def _as_file(storage: Any) -> Any:  # noqa: ANN401
    """Return an attached mail as that of a file, whose properties have a header that is longer by eight bytes."""
    streams = [
        replace(stream, bytes_=stream.bytes_[:24] + bytes(8) + stream.bytes_[24:])
        if stream.name == _PROPERTIES
        else stream
        for stream in storage.streams
    ]
    return replace(storage, streams=tuple(streams))


def _mail(headers: dict[str, str], text: str, attached: list[str]) -> Iterator[Section]:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Attachment: {name}" for name in attached]
    about = ", ".join(filter(None, [headers.get("From"), headers.get("Date")]))
    yield from (Section("\n".join(lines), Place(f"mail from {about}")), Section(text))


def _mail_content(about: dict[str, str], sections: list[Section], unread: list[str], tags: str = "") -> Content:
    note = f"not read: {'; '.join(unread)}" if unread else ""
    return Content(title_from(about.get("Subject")), sections, about.get("From"), about.get("Date"), tags, note)


def read_notebook(data: bytes) -> Content:
    """Return the cells of a Jupyter notebook: text as Markdown, code in fences; outputs are left out."""
    notebook = json.loads(decode(data))
    about = notebook.get("metadata", {})
    language = about.get("kernelspec", {}).get("language", "")
    sheets = [notebook] if "cells" in notebook else notebook["worksheets"]  # until nbformat 3
    cells = [cell for sheet in sheets for cell in sheet["cells"]]
    sections = [Section(_cell(cell, language), Place("cell", number)) for number, cell in enumerate(cells, start=1)]
    texts = (section.text for section, cell in zip(sections, cells, strict=True) if cell["cell_type"] != "code")
    title = next(filter(None, map(first_heading, texts)), about.get("title") or about.get("name"))
    return Content(title_from(title), sections)


def _cell(cell: dict[str, Any], language: str) -> str:
    """Return a cell; in nbformat 3, code is its input, and headings are cells of their own."""
    source = cell["source"] if "source" in cell else cell["input"]
    text = source if isinstance(source, str) else "".join(source)
    if cell["cell_type"] == "code" and text.strip():
        fence = max(["```", *(f"{run}`" for run in re.findall("`{3,}", text))], key=len)
        return f"{fence}{language or cell.get('language', '')}\n{text}\n{fence}"
    return f"{'#' * cell.get('level', 1)} {single_line(text)}" if cell["cell_type"] == "heading" else text
