"""Files of formats that are made for a test."""

import io
import zipfile
from collections.abc import Callable, Mapping
from typing import Any

from reportlab.pdfgen.canvas import Canvas

from sleuth.tools.documents.formats.content import Content, join_sections


def saved(file: Any) -> bytes:
    """Return the bytes of a document of python-docx, python-pptx or openpyxl."""
    out = io.BytesIO()
    file.save(out)
    return out.getvalue()


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
