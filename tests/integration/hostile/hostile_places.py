"""Special files, unusual names and corpora."""

import gzip
import json
import os
import socket
from pathlib import Path

from hostile_texts import READ, SAMPLE, Made


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
