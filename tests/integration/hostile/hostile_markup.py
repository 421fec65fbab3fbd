"""Web pages and Word files that somebody means ill with."""

import io
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping

from hostile_texts import EITHER, READ, SAMPLE, Made

PASSWORDS = "/etc/passwd"

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_TYPES = (
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
    'wordprocessingml.document.main+xml"/></Types>'
)
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATIONS = (
    '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    f'<Relationship Id="r1" Type="{_OFFICE}/officeDocument" Target="word/document.xml"/>%s</Relationships>'
)


def _paragraphs(text: str) -> str:
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def _body(inner: str, head: str = "") -> str:
    return f'<?xml version="1.0"?>{head}<w:document {_W}><w:body>{inner}</w:body></w:document>'


def packed(files: Mapping[str, bytes | str], *, comment: bytes = b"") -> bytes:
    """A zip file."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
        archive.comment = comment
    return out.getvalue()


def word(document: str | bytes, relations: str = "", **more: bytes | str) -> bytes:
    """A Word file with this main part."""
    parts = {"[Content_Types].xml": _TYPES, "_rels/.rels": _RELATIONS % relations, "word/document.xml": document}
    return packed({**parts, **more})


def _docx(inner: str, head: str = "") -> Callable[[], bytes]:
    return lambda: word(_body(inner, head))


def _entities(levels: int) -> str:
    each = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, levels))
    return f'<!DOCTYPE w [<!ENTITY e0 "geese">{each}]>'


def _bomb_that_lies() -> bytes:
    """A Word file whose main part unpacks to much more than its directory claims."""
    document = _body(_paragraphs("x" * (300 << 20)))
    return word(document).replace(struct.pack("<I", len(document)), struct.pack("<I", 1_000))


def word_files() -> Made:
    """Entities, bombs, lies about sizes, names that lead out of the archive."""
    external = f'<!DOCTYPE w [<!ENTITY e SYSTEM "file://{PASSWORDS}">]>'
    parameter = '<!DOCTYPE w [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]>'
    good = _body(_paragraphs(SAMPLE))
    return {
        "entity-of-a-file.docx": (EITHER, _docx(_paragraphs(f"{SAMPLE}&e;"), external)),
        "entity-of-a-server.docx": (EITHER, _docx(_paragraphs(SAMPLE), parameter)),
        "laughs.docx": (EITHER, _docx(_paragraphs(f"{SAMPLE}&e9;"), _entities(10))),
        "part-above.docx": (READ, lambda: word(good, **{"../../../tmp/sleuth-was-here.xml": "x", "/etc/x.xml": "x"})),
        "bomb-that-lies.docx": ("not a Word file", _bomb_that_lies),
        "deep.docx": (EITHER, _docx("<w:sdt>" * 100_000 + _paragraphs("x") + "</w:sdt>" * 100_000)),
    }  # fmt: skip


def pages() -> Made:
    """Nesting, entities and attributes without end, and links to files of this machine."""
    many = {
        "deep.html": (EITHER, "<div>" * 100_000 + SAMPLE),
        "long-attribute.html": (EITHER, f'<p title="{"x" * 12_000_000}">{SAMPLE}</p>'),
        "entity-of-a-file.html": (READ, f'<!DOCTYPE p [<!ENTITY e SYSTEM "file://{PASSWORDS}">]><p>{SAMPLE}&e;</p>'),
    }  # fmt: skip
    return {name: (what, lambda text=text: text.encode()) for name, (what, text) in many.items()} | {  # type: ignore[misc]
        "packed.html": ("binary data", lambda: b"\x1f\x8b" + zlib.compress(SAMPLE.encode())),
    }
