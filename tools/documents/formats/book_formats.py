"""Text out of books, mails and notebooks."""

import json
import re
from collections.abc import Iterator
from email import message_from_bytes, policy
from email.message import EmailMessage, MIMEPart
from io import BytesIO
from pathlib import PurePosixPath
from posixpath import normpath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urldefrag
from zipfile import ZipFile

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.content import Content, Place, Section, damage_as
from sleuth.tools.documents.formats.html_format import (
    HIDDEN,
    MIN_KEPT_SHARE,
    decode_html,
    html_title,
    parse_html,
    whole_page,
)
from sleuth.tools.errors import DocumentError
from sleuth.tools.text.normalization import decode, single_line, title_from, without_bom

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_OPF = "{http://www.idpf.org/2007/opf}"
_DUBLIN_CORE = "{http://purl.org/dc/elements/1.1/}"
HEADERS = ("From", "To", "Cc", "Date", "Subject")


@damage_as("is not an EPUB book, or is damaged. Leave it out.")
def read_epub(data: bytes) -> Content:
    """Return the chapters of a book in reading order."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    with open_zip(data, kind="an EPUB book") as archive:
        container = etree.fromstring(archive.read("META-INF/container.xml"), parser)
        (path, *_) = container.xpath("//*[local-name()='rootfile']/@full-path")
        package = etree.fromstring(archive.read(path), parser)
        chapters = list(_chapters(archive, PurePosixPath(path), package))
    title, date = (package.findtext(f".//{_DUBLIN_CORE}{name}") for name in ("title", "date"))
    authors, tags = ([each.text for each in package.iter(_DUBLIN_CORE + name)] for name in ("creator", "subject"))
    return Content(title_from(title), chapters, authors, date, tags)


def _chapters(archive: ZipFile, package_path: PurePosixPath, package: "Element") -> Iterator[Section]:
    files = {item.get("id"): item.get("href", "") for item in package.iter(f"{_OPF}item")}
    names = set(archive.namelist())
    for number, reference in enumerate(package.iter(f"{_OPF}itemref"), start=1):
        href = files.get(reference.get("idref"), "")
        name = normpath(str(package_path.parent / unquote(urldefrag(href).url))).lstrip("/")
        if href and name in names:
            page = parse_html(decode_html(archive.read(name)))
            heading = page.find(["h1", "h2", "h3"])
            title = title_from(heading.get_text(" ") if heading else None) or html_title(page)
            yield Section(
                whole_page(page, leave_out=HIDDEN), Place(f"chapter “{title}”") if title else Place("chapter", number)
            )
        elif href:
            yield Section(f"(The file of this chapter is missing: {href})", Place("chapter", number))


@damage_as("is not a mail, or is damaged. Leave it out.")
def read_eml(data: bytes) -> Content:
    """Return the headers and the text of a mail and of the mails in it; attachments are named, not read."""
    mail = message_from_bytes(without_bom(data), policy=policy.default)
    about = _headers(mail)
    if not about:
        raise DocumentError("is not a mail: it has no sender, date or subject. Leave it out.")
    return _mail_content(about, list(_mail_sections(mail)), str(mail["Keywords"] or ""))


def read_mbox(data: bytes) -> Content:
    """Return the mails of a mailbox, each as `read_eml` returns it."""
    mails = re.split(rb"(?:\A|\r?\n\r?\n)From [^\r\n]*\r?\n", without_bom(data))
    contents, unread = list[Content](), 0
    for mail in filter(bytes.strip, mails):
        try:
            contents.append(read_eml(re.sub(rb"(?m)^>(>*From )", rb"\1", mail)))
        except DocumentError:
            unread += 1
    if not contents:
        raise DocumentError("is not a mailbox in the mbox format. Leave it out.")
    note = f"mails that cannot be read: {unread}" * (unread > 0)
    return Content(None, [section for content in contents for section in content.sections], note=note)


def _headers(mail: MIMEPart) -> dict[str, str]:
    return {name: single_line(str(mail[name])) for name in HEADERS if mail[name]}


def _mail_sections(mail: MIMEPart) -> Iterator[Section]:
    """Yield a mail, and the mails that it forwards."""
    parts = list(_parts(mail))
    texts = [_text(part) for part in parts if _is_shown(part)]
    attached = [part.get_filename() or "without a name" for part in parts if not _is_shown(part)]
    forwarded = [mail for part in parts if part.get_content_type() == "message/rfc822" for mail in part.iter_parts()]
    yield from _mail(_headers(mail), "\n\n".join(filter(str.strip, texts)), attached)
    for inner in forwarded:
        yield from _mail_sections(inner)


def _parts(part: MIMEPart) -> Iterator[MIMEPart]:
    """Yield the parts that a mail program shows or lists, of alternatives the best one."""
    if part.get_content_type() == "multipart/alternative":
        yield from _best_alternative(list(part.iter_parts()) or [EmailMessage()])
    elif part.get_content_maintype() == "multipart":
        for inner in part.iter_parts():
            yield from _parts(inner)
    else:
        yield part


def _best_alternative(parts: list[MIMEPart]) -> list[MIMEPart]:
    """Return the parts of the first alternative, or of a later one if it lacks many of the words of the last one."""
    shown = [list(_parts(part)) for part in parts]
    words = [set(re.findall(r"\w+", " ".join(_text(part) for part in each if _is_shown(part)))) for each in shown]
    best = next(filter(None, reversed(words)), set[str]())
    return next(each for each, some in zip(shown, words, strict=True) if len(some & best) >= MIN_KEPT_SHARE * len(best))


def _is_shown(part: MIMEPart) -> bool:
    return part.get_content_type() in ("text/plain", "text/html") and not part.is_attachment()


def _text(part: MIMEPart) -> str:
    data = part.get_payload(decode=True)
    text = decode(data, declared=part.get_content_charset()) if isinstance(data, bytes) else ""
    return whole_page(parse_html(text), leave_out=HIDDEN) if part.get_content_subtype() == "html" else text


@damage_as("is not an Outlook mail, or is damaged. Save it as .eml.")
def read_msg(data: bytes) -> Content:
    """Return the headers and the text of an Outlook mail; attachments are named, not read."""
    from oxmsg import Message

    mail: Any = Message.load(BytesIO(data))
    to = "; ".join(f"{each.name} <{each.email_address}>" for each in mail.recipients)
    date = mail.sent_date.isoformat(" ", "minutes") if mail.sent_date else ""
    found = {"From": mail.sender, "To": to, "Date": date, "Subject": mail.subject}
    text = mail.body or (whole_page(parse_html(mail.html_body), leave_out=HIDDEN) if mail.html_body else "")
    attached = [each.file_name or "without a name" for each in mail.attachments]
    about = {name: single_line(value) for name, value in found.items() if value}
    return _mail_content(about, list(_mail(about, text, attached)))


def _mail(headers: dict[str, str], text: str, attached: list[str]) -> Iterator[Section]:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    lines += [f"Attachment: {name}" for name in attached]
    about = ", ".join(filter(None, [headers.get("From"), headers.get("Date")]))
    yield from (Section("\n".join(lines), Place(f"mail from {about}")), Section(text))


def _mail_content(about: dict[str, str], sections: list[Section], tags: str = "") -> Content:
    return Content(title_from(about.get("Subject")), sections, about.get("From"), about.get("Date"), tags)


@damage_as("is not a Jupyter notebook, or is damaged. Save it again.")
def read_notebook(data: bytes) -> Content:
    """Return the cells of a Jupyter notebook: text as Markdown, code in fences; outputs are left out."""
    notebook = json.loads(decode(data))
    language = notebook.get("metadata", {}).get("kernelspec", {}).get("language", "")
    sections = [
        Section(_cell(cell, language), Place("cell", number)) for number, cell in enumerate(notebook["cells"], start=1)
    ]
    first = next((line for section in sections for line in section.text.split("\n") if line.startswith("# ")), "")
    return Content(title_from(first[2:]), sections)


def _cell(cell: dict[str, Any], language: str) -> str:
    source = cell["source"]
    text = source if isinstance(source, str) else "".join(source)
    return f"```{language}\n{text}\n```" if cell["cell_type"] == "code" and text.strip() else text
