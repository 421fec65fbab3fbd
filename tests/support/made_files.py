"""Files of formats that are made for a test."""

import io
import zipfile
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from typing import Any

import docx
import openpyxl
import pptx
from reportlab.pdfgen.canvas import Canvas

from sleuth.tools.documents.formats.content import Content, join_sections


def saved(file: Any) -> bytes:
    """Return the bytes of a document of python-docx, python-pptx or openpyxl."""
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


def office(suffix: str, text: str) -> bytes:
    """Return an Office file with a text: a paragraph, a cell, or the title of a slide."""
    made: Any
    if suffix == ".docx":
        made = docx.Document()
        made.add_paragraph(text)
    elif suffix == ".xlsx":
        made = openpyxl.Workbook()
        made.worksheets[0].append([text])
    else:
        made = pptx.Presentation()
        made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = text
    return saved(made)


def mail(text: str = "", *parts: EmailMessage, subtype: str = "plain", **headers: str) -> EmailMessage:
    """Return a mail with a text and more parts."""
    message = EmailMessage()
    for name, value in headers.items():
        message[name] = value
    message.set_content(text, subtype=subtype)
    for part in parts:
        message.make_mixed() if not message.is_multipart() else None
        message.attach(part)
    return message


def zipped(entries: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return out.getvalue()


def rezipped(file: bytes, change: Callable[[str, bytes], bytes], more: Mapping[str, str] | None = None) -> bytes:
    """Return a zip file with the content of each member changed, and more members."""
    with zipfile.ZipFile(io.BytesIO(file)) as old:
        return zipped({name: change(name, old.read(name)) for name in old.namelist()} | dict(more or {}))


def drawn(draw: Callable[[Canvas], object]) -> bytes:
    """Return a PDF file."""
    out = io.BytesIO()
    canvas = Canvas(out)
    draw(canvas)
    canvas.save()
    return out.getvalue()


def text_of(content: Content) -> str:
    return join_sections(content.sections)[0]
