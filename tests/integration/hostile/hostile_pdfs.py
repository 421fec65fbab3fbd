"""PDF files that somebody means ill with: loops, depth, bombs and lies."""

import zlib
from collections.abc import Callable

from hostile_texts import EITHER, GIVEN_UP, READ, SAMPLE, Made

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
