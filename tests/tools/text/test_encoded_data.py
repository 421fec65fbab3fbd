"""Data written as text is no part of any passage; what only resembles it stays."""

import json
import textwrap
from base64 import b64encode
from pathlib import Path
from random import Random

import pytest
from linear_time import takes_linear_time

from sleuth.tools.documents.corpus import read_corpus
from sleuth.tools.documents.loading import load
from sleuth.tools.errors import DocumentError
from sleuth.tools.text.encoded_data import without_encoded_data

BYTES = Random(5).randbytes(30_000)
PICTURE = b64encode(BYTES).decode()
LINES = textwrap.fill(PICTURE[:5_000], 76)
HEX = [BYTES[at : at + 16].hex(" ") for at in range(0, 3_200, 16)]
SCRIPT = "".join(f"function f{at}(a,b){{var c=a+b;return c*{at}}};" for at in range(60))
ENCODED = {
    f"![plan](data:image/png;base64,{PICTURE})": "![plan](…)",
    f"The plan.\n\n[image1]: <data:image/png;base64,{PICTURE}>\n\nAfter.": "The plan.\n\n\nAfter.",
    f'<img alt="plan" src="data:image/png;base64,{PICTURE}">': '<img alt="plan" src="…">',
    f"url('data:image/svg+xml;utf8,<svg xmlns=\"x\">{'<path/>' * 9}</svg>') of it": "url('…') of it",
    f"data:image/png;base64,{LINES}\nThe plan is old.": "…\nThe plan is old.",
    f"-----BEGIN CERTIFICATE-----\n{LINES}\n-----END CERTIFICATE-----": (
        "-----BEGIN CERTIFICATE-----\n…\n-----END CERTIFICATE-----"
    ),
    f"She wrote:\n> {LINES.replace(chr(10), f'{chr(10)}> ')}\n\nRosa": "She wrote:\n> …\n\nRosa",
    f'{{"picture": "{PICTURE}", "name": "plan"}}': '{"picture": "…", "name": "plan"}',
    f"key {BYTES.hex()} end": "key … end",
    f"bytes {' '.join(HEX)} end": "bytes … end",
    "x = {" + ", ".join(f"0x{byte:02X}" for byte in BYTES[:400]) + "};": "x = {…};",
    'b"' + "".join(f"\\x{byte:02x}" for byte in BYTES[:400]) + '"': 'b"…"',
    "".join(f"{16 * at:08x}: {line}  .{'0' * 15}\n" for at, line in enumerate(HEX)): "…  .000000000000000\n",
    "begin 644 a.gif\n" + f"M{'(' * 60}\n" * 9 + "#86)C\n`\nend\nThe end.": "…\nThe end.",
    f"/* a script */\n{SCRIPT}\nThe end.": "/* a script */\n…\nThe end.",
}
TEXTS = [
    "Short data:image/gif;base64,R0lGODlhAQABAAAAACw= stays.",
    "\n".join(f"{BYTES[at : at + 32].hex()}  boat{at}.txt" for at in range(0, 640, 32)),
    f"SHA-256 fingerprint: {BYTES[:32].hex(':')}",
    "\n".join(" ".join(str(1000 + 7 * (row + cell)) for cell in range(20)) for row in range(40)),
    "/usr/share/doc/harbor-office/examples/of-some_long-name/" * 9,
    "-" * 500,
    "[" + ",".join(f'{{"id":{at},"name":"Ada"}}' for at in range(300)) + "]",
    "INSERT INTO boats VALUES " + ",".join(f"({at},'Heron','x')" for at in range(200)) + ";",
    ";".join(f"{at}.5" for at in range(500)),
    "Donaudampfschifffahrtsgesellschaftskapitän " * 40,
    "灯塔由老船长建造镇上的人都认识他" * 100,
]


@pytest.mark.parametrize("text", ENCODED, ids=lambda text: text[:20])
def test_encoded_data_is_left_out(text: str) -> None:
    assert without_encoded_data(text) == ENCODED[text]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text[:20])
def test_text_that_resembles_encoded_data_stays(text: str) -> None:
    assert without_encoded_data(text) == text


@pytest.mark.parametrize(
    "piece",
    ["A" * 39 + " ", "0a ", "a-" * 30, "begin 644 x\n", "[a]: <data:", "data:image/svg+xml,<svg ", "00000000: 00  .\n"],
)
def test_search_for_encoded_data_takes_linear_time(piece: str) -> None:
    assert takes_linear_time(lambda size: without_encoded_data(piece * (size // len(piece))))


def test_pasted_pictures_are_no_passages(tmp_path: Path) -> None:
    pasted = f"![plan](data:image/png;base64,{PICTURE})\n\n![old plan][one]\n\n[one]: <data:image/png;base64,{PICTURE}>"
    (tmp_path / "a.md").write_text(f"# Plan\n\nIt was drawn in 1920.\n\n{pasted}\n")
    document = load(tmp_path / "a.md")
    assert len(document.spans) == 1
    assert all(part in document.text for part in ("drawn in 1920", "![plan]", "![old plan]"))
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "a", "text": f"The plan. {PICTURE}"}))
    (line,) = read_corpus(tmp_path / "a.jsonl")
    assert not isinstance(line, DocumentError) and line.text == "The plan. …"


@pytest.mark.parametrize(("name", "text"), [("a.txt", PICTURE), ("a.js", f"{SCRIPT}\n\n{SCRIPT}")], ids=["a", "b"])
def test_file_of_encoded_data_alone_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DocumentError, match="and no text"):
        load(tmp_path / name)
