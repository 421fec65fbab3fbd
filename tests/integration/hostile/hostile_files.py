"""Files that somebody means ill with: name, what becomes of it, and its bytes."""

import codecs
import gzip
import io
import json
import os
import socket
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

# Plain text, Markdown and tables

READ = ""
"""Marks a file that is read; any other value is a part of the reason for its refusal."""
EITHER = "?"
"""A file that may be read or refused, depending on the parser's release; nothing else may come of it."""
GIVEN_UP = " to read. Split it, or raise SLEUTH_FILE_"
"""A file that takes more processor time or memory than it may."""

Made = dict[str, tuple[str, Callable[[], bytes]]]

SAMPLE = "The miller of Varn kept geese. "


def _text(text: str) -> Callable[[], bytes]:
    return lambda: text.encode("utf-8", "surrogatepass")


def characters() -> Made:
    """Characters that break code in which each character is a letter."""
    return {
        "marks-on-a-letter.txt": (READ, _text("a" + "\u0301\u0316" * 60_000 + " b")),
        "utf-16-lone-halves.txt": (READ, lambda: codecs.BOM_UTF16_LE + b"A\x00\x00\xd8B\x00\x00\xdc" * 99),
        "noise.txt": ("binary data", lambda: bytes(7 * n * n % 251 for n in range(20_000))),
        "terminal.txt": (EITHER, _text("\x1b]0;owned\x07\x1b[2J" + SAMPLE * 99)),
    }


def sizes() -> Made:
    """Long lines and many of them."""
    return {
        "a-line-of-50-megabytes.txt": ("at most", lambda: b"goose " * (50_000_000 // 6)),
        "a-word-of-5-megabytes.txt": ("no text", lambda: b"goose" * 1_000_000),
        "line-ends-of-50-megabytes.txt": ("no text", lambda: b"\n" * 50_000_000),
    }


def markdown() -> Made:
    """Markup that takes the square of its length where it is read carelessly."""
    return {
        "quotes-in-quotes.md": (READ, _text(">" * 200_000 + " x")),
        "brackets.md": (READ, _text("[" * 100_000 + "]" * 100_000)),
        "table-of-one-row.md": (READ, _text("|a" * 50_000 + "\n" + "|-" * 50_000 + "\n")),
        "links-to-files.md": (READ, _text("![x](file:///etc/passwd) <iframe src='file:///etc/passwd'></iframe> " * 9)),
    }


def tables() -> Made:
    """Tables of values that grow when they are read."""
    return {
        "wide.csv": (EITHER, lambda: b"," * 600_000 + b"\n" + (b"x" * 99 + b",y\n") * 110_000),
    }


# Word files and web pages

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
        "bomb-that-lies.docx": ("not a .docx file", _bomb_that_lies),
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


# PDF files: loops, depth, bombs and lies

_FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
_PAGE = (
    b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>"
)
_SAID = b"BT /F1 12 Tf 72 700 Td (" + SAMPLE.strip().encode() + b") Tj ET"


def stream(content: bytes, extra: bytes = b"") -> bytes:
    """A stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), extra, content)


def pdf(changed: dict[int, bytes] | None = None, *, trailer: bytes = b"", start: int | None = None) -> bytes:
    """A page that contains the sample, with some of its objects changed or added.

    `start` is the declared position of the table.
    """
    objects = {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: _PAGE,
        4: stream(_SAID),
        5: _FONT,
    } | (changed or {})
    out, places = b"%PDF-1.7\n", {}
    for number, content in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"xref\n0 1\n0000000000 65535 f \n"
    table += b"".join(b"%d 1\n%010d 00000 n \n" % (number, place) for number, place in places.items())
    tail = b"trailer\n<< /Size %d /Root 1 0 R %s >>\n" % (max(places) + 1, trailer)
    return out + table + tail + b"startxref\n%d\n%%%%EOF\n" % (len(out) if start is None else start)


def _flate_bomb(megabytes: int) -> bytes:
    """Packed piece by piece, so that making it takes no memory."""
    packer = zlib.compressobj(1)
    data = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(megabytes)) + packer.flush()
    return stream(data, b"/Filter /FlateDecode")


def _deep_pages(depth: int) -> dict[int, bytes]:
    nodes = {n: b"<< /Type /Pages /Kids [%d 0 R] /Count 1 >>" % (n + 1) for n in range(10, 10 + depth)}
    return {2: b"<< /Type /Pages /Kids [10 0 R] /Count 1 >>", **nodes, 10 + depth: _PAGE}


def trees() -> Made:
    """Loops and depth."""
    return {
        "pages-in-a-circle.pdf": (EITHER, lambda: pdf({2: b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"})),
        "pages-deep.pdf": (EITHER, lambda: pdf(_deep_pages(5_000))),
        "page-many-times.pdf": (
            GIVEN_UP, lambda: pdf({2: b"<< /Type /Pages /Kids [%s] /Count 100000 >>" % (b"3 0 R " * 100_000)}),
        ),
        "lists-deep.pdf": (EITHER, lambda: pdf({6: b"[" * 100_000 + b"]" * 100_000}, trailer=b"/Info 6 0 R")),
    }  # fmt: skip


def bombs() -> Made:
    """Streams that unpack to much, and tables that spread."""
    return {
        "stream-of-a-gigabyte.pdf": (EITHER, lambda: pdf({4: _flate_bomb(1_024)})),
        "predictor.pdf": (EITHER, lambda: pdf({4: stream(
            zlib.compress(bytes(9_000)), b"/Filter /FlateDecode /DecodeParms << /Predictor 15 /Columns 999999999 >>"
        )})),
        "table-of-a-billion.pdf": (EITHER, lambda: pdf().replace(b"xref\n0 1\n", b"xref\n0 999999999\n")),
    }  # fmt: skip


def lies() -> Made:
    """Damaged and wrong declarations."""
    good = pdf()
    scenes: dict[str, tuple[str, Callable[[], bytes]]] = {
        "cut.pdf": (EITHER, lambda: good[: len(good) // 2]),
        "length-too-long.pdf": (EITHER, lambda: good.replace(b"/Length ", b"/Length 99999")),
        "does-things.pdf": (READ, lambda: pdf({1: (
            b"<< /Type /Catalog /Pages 2 0 R /OpenAction << /S /Launch /F (/bin/sh) >> "
            b"/AA << /WC << /S /JavaScript /JS (app.alert(1)) >> >> >>"
        )})),
        "reads-a-file.pdf": (EITHER, lambda: pdf({4: b"<< /Length 0 /F (/etc/passwd) >>\nstream\n\nendstream"})),
    }  # fmt: skip
    return scenes


# Corpora, special files and unusual names


def _row(**values: object) -> bytes:
    return json.dumps({"id": "x", "title": "Geese", "text": SAMPLE, **values}).encode() + b"\n"


def corpora() -> Made:
    """A corpus that is expected to be READ has a usable line with a unique id."""
    return {
        "line-of-50-megabytes.jsonl": (READ, lambda: _row(text="goose " * 8_000_000) + _row(id="kept")),
        "ids.jsonl": (READ, lambda: b'{"id": ' + b"9" * 10_000 + b', "text": "x"}\n' + _row(id=1e300)),
        "bomb-of-one-line.jsonl.gz": ("times its size", lambda: gzip.compress(b" " * (1 << 20)) * 100),
    }


NAMES = (
    b"two\nlines.md", b"\xff\xfe\xe9.md", b"\x1b[2Jcleared.md", b"-rf.md", b"'; DROP TABLE documents; --.md",
    "\u202edm.exe.md".encode(), b"$question {text} %s.md", b"<source 1>.md", b"n" * 250 + b".md",
    b"..md.md", b" .md", b"~.md",
)  # fmt: skip


def make_places(root: Path) -> dict[str, str]:
    """Odd places and names below a folder, each with a part of the expected message."""
    for name in NAMES:
        with open(os.fsencode(root) + b"/" + name, "wb") as file:  # noqa: PTH123 - not every name is a Path
            file.write(SAMPLE.encode())
    deep = root
    for _ in range(40):
        deep /= "d" * 60
    deep.mkdir(parents=True)
    (deep / "deep.md").write_text(SAMPLE)
    for suffix in ("md", "jsonl", "pdf", "jsonl.gz"):
        os.mkfifo(root / f"pipe.{suffix}")
        (root / f"zeros.{suffix}").symlink_to("/dev/zero")
    (root / "circle").symlink_to(root)
    (root / "itself.md").symlink_to(root / "itself.md")
    (root / "gone.md").symlink_to(root / "nowhere.md")
    with socket.socket(socket.AF_UNIX) as listening:
        short = os.open(root, os.O_RDONLY)
        listening.bind(f"/proc/self/fd/{short}/socket.md")
        os.close(short)
    ordinary = "not a readable file"
    kinds = {
        f"{kind}.{suffix}": ordinary for kind in ("pipe", "zeros") for suffix in ("md", "jsonl", "pdf", "jsonl.gz")
    }
    return {**kinds, "itself.md": "cannot be opened", "gone.md": "cannot be opened", "socket.md": ordinary}
