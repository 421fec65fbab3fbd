"""An Outlook mail (.msg) with few properties, as [MS-CFB] and [MS-OXMSG] describe the file."""

import struct
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeAlias

Folder: TypeAlias = "Mapping[str, Folder | bytes]"

SUBJECT, SENDER_NAME, SENDER_ADDRESS, BODY, SENT = 0x0037, 0x0C1A, 0x0C1F, 0x1000, 0x0039
NAME, ADDRESS, FILE_NAME = 0x3001, 0x3003, 0x3707
_TEXT, _TIME = 0x001F, 0x0040
_END, _FREE, _FAT = 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFD
_SECTOR, _SMALL = 512, 64


def outlook_mail(
    texts: Mapping[int, str], *, sent: datetime, to: Mapping[str, str], attached: tuple[str, ...] = ()
) -> bytes:
    """Return a mail; `texts` by property, `to` has addresses by name."""
    ticks = int((sent - datetime(1601, 1, 1, tzinfo=UTC)).total_seconds()) * 10_000_000
    time = struct.pack("<IIQ", SENT << 16 | _TIME, 6, ticks)
    head = struct.pack("<8x4I8x", len(to), len(attached), len(to), len(attached))
    folder: dict[str, Folder | bytes] = {**_properties(texts, head, time)}
    for at, (name, address) in enumerate(to.items()):
        folder[f"__recip_version1.0_#{at:08X}"] = _properties({NAME: name, ADDRESS: address}, bytes(8))
    for at, name in enumerate(attached):
        folder[f"__attach_version1.0_#{at:08X}"] = _properties({FILE_NAME: name}, bytes(8))
    return _compound_file(folder)


def _properties(texts: Mapping[int, str], head: bytes, more: bytes = b"") -> dict[str, bytes]:
    encoded = {number << 16 | _TEXT: text.encode("utf-16-le") for number, text in texts.items()}
    rows = b"".join(struct.pack("<IIII", tag, 6, len(data) + 2, 0) for tag, data in encoded.items())
    streams = {f"__substg1.0_{tag:08X}": data for tag, data in encoded.items()}
    return {"__properties_version1.0": head + more + rows, **streams}


def _compound_file(root: Folder) -> bytes:
    """Return a file whose streams are all in the mini stream, so that each must be shorter than 4,096 bytes."""
    mini, chain, entries = bytearray(), list[int](), [b""]
    first = _add(root, mini, chain, entries)
    entries[0] = _entry("Root Entry", 5, first, 1, len(mini))
    entries += [_entry("", 0, _FREE, 0, 0)] * (-len(entries) % 4)
    parts = [bytes(mini), b"".join(entries), struct.pack(f"<{len(chain)}I", *chain)]
    fat, starts, counts = [_FAT], list[int](), list[int]()
    for part in parts:
        starts.append(len(fat))
        counts.append(-(-len(part) // _SECTOR))
        fat += [*range(starts[-1] + 1, starts[-1] + counts[-1]), _END]
    assert len(fat) <= _SECTOR // 4
    fat += [_FREE] * (_SECTOR // 4 - len(fat))
    header = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    header += struct.pack("<IIIIIIIIII", 0, 1, starts[1], 0, 4096, starts[2], counts[2], _END, 0, 0)
    header += struct.pack("<108I", *[_FREE] * 108)
    padded = b"".join(part + bytes(-len(part) % _SECTOR) for part in parts)
    return header + struct.pack(f"<{len(fat)}I", *fat) + padded


def _add(folder: Folder, mini: bytearray, chain: list[int], entries: list[bytes]) -> int:
    """Add the entries of a folder, each the right sibling of the one before; return the number of the first."""
    names = sorted(folder, key=lambda name: (len(name), name.upper()))
    first = len(entries)
    entries += [b""] * len(names)
    for at, name in enumerate(names):
        item, sibling = folder[name], first + at + 1 if at + 1 < len(names) else _FREE
        if isinstance(item, bytes):
            assert 0 < len(item) < 4096
            start, count = len(chain), -(-len(item) // _SMALL)
            chain += [*range(start + 1, start + count), _END]
            mini += item + bytes(-len(item) % _SMALL)
            entries[first + at] = _entry(name, 2, _FREE, start, len(item), sibling=sibling)
        else:
            entries[first + at] = _entry(name, 1, _add(item, mini, chain, entries), 0, 0, sibling=sibling)
    return first


def _entry(name: str, kind: int, child: int, start: int, size: int, *, sibling: int = _FREE) -> bytes:
    encoded = (name + "\0").encode("utf-16-le") if name else b""
    return struct.pack(
        "<64sHBBIII16sI8s8sIQ", encoded, len(encoded), kind, 1, _FREE, sibling, child, b"", 0, b"", b"", start, size
    )
