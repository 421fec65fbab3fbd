"""Share of the words of documents that their readers find, by kind of content.

    python -m benchmarks.document_text                   # the share for each kind; 1.00 is right
    python -m benchmarks.document_text --write FOLDER    # FOLDER/small: 128 files of ten formats; FOLDER/large: a PDF
    python -m benchmarks.document_text --read FOLDER/small    # read them in one process: time and memory

The documents are those of the tests, the same content in each format.
"""

import json
import time
from collections import defaultdict
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import docx
import openpyxl
import typer
from reportlab.pdfgen.canvas import Canvas

from sleuth.tools.documents.loading import load
from sleuth.tools.documents.resource_limits import peak_megabytes
from sleuth.tools.errors import DocumentError
from tests.support import document_cases as made
from tests.support.made_files import drawn, saved


def share(case: made.Case, folder: Path) -> float:
    """Return the share of the words of the expected texts that are found, 0 if a text is read that must not be."""
    path = folder / case.name
    path.write_bytes(case.data)
    try:
        text = load(path).text
    except DocumentError:
        return 0.0
    lost = sum(len(expected.split()) for expected in case.expected if expected not in text)
    return (1 - lost / sum(len(expected.split()) for expected in case.expected)) * (not made.unwanted(case, text))


def write_small_files(folder: Path) -> None:
    """Write 128 files of ten formats with prose, a list and a table of ten rows each."""
    words = "The harbor of Sennick was built by Rosa Quill in 1843 and rebuilt after the great storm of 1871. "
    rows = [["boat", "built", "fee"], *([f"Boat {number}", str(1840 + number), f"{number}.50"] for number in range(10))]
    html = f"<h1>Harbor</h1>{f'<p>{words * 3}</p>' * 4}<table>" + "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows
    )
    document, book = docx.Document(), openpyxl.Workbook()
    document.add_heading("Harbor", 1)
    for _ in range(4):
        document.add_paragraph(words * 3)
    table = document.add_table(len(rows), 3)
    for at, row in enumerate(rows):
        book.worksheets[0].append(row)
        for column, cell in enumerate(row):
            table.cell(at, column).text = cell
    markdown = f"# Harbor\n\n{words * 12}\n\n" + "\n".join(f"| {' | '.join(row)} |" for row in rows)
    shown = made.slide("".join(made.shape(words) for _ in range(6)))
    text = made.opened("".join(f"<text:p>{words * 3}</text:p>" for _ in range(4)))
    cells = "\n".join(",".join(row) for row in rows).encode()
    notebook = json.dumps({"cells": [{"cell_type": "markdown", "source": markdown}], "metadata": {}}).encode()
    files = {
        "docx": saved(document), "xlsx": saved(book), "pptx": shown, "odt": text, "html": made.page(html),
        "epub": made.book(html), "eml": made.mail(html), "md": markdown.encode(), "csv": cells, "ipynb": notebook,
    }  # fmt: skip
    for number, suffix in enumerate(islice(cycle(files), 128)):
        (folder / f"file{number}.{suffix}").write_bytes(files[suffix])


def write_large_pdf(folder: Path) -> None:
    """Write a PDF of 300 pages, each with prose and a table of ten rows."""
    words = "The ferry to the islands was built by Rosa Quill in the spring of 1843, and sailed for forty years."

    def draw(canvas: Canvas) -> None:
        for page in range(300):
            lines = [f"Chapter {page}", *[words] * 20]
            for at, line in enumerate(lines):
                canvas.drawString(72, 780 - 14 * at, line)
            for row in range(10):
                for x, cell in zip((72, 220, 320), (f"Boat {row}", f"{1840 + row}", f"{row}.50"), strict=True):
                    canvas.drawString(x, 440 - 14 * row, cell)
            canvas.showPage()

    (folder / "book.pdf").write_bytes(drawn(draw))


def main(
    write: Annotated[Path | None, typer.Option(help="Write small files and a large one into this folder.")] = None,
    read: Annotated[Path | None, typer.Option(help="Read the files of this folder.")] = None,
) -> None:
    """Print the share of words that are found, write small files, or read them."""
    if write:
        for name, make in {"small": write_small_files, "large": write_large_pdf}.items():
            (write / name).mkdir(parents=True, exist_ok=True)
            make(write / name)
    elif read:
        began = time.process_time()
        characters = sum(len(load(path).text) for path in sorted(read.iterdir()))
        print(f"{characters} characters, {time.process_time() - began:.1f} s, {peak_megabytes():.0f} MiB")
    else:
        print_shares()


def print_shares() -> None:
    """Print the share of each document that is not complete, and of each kind."""
    shares: dict[str, list[float]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        for case in made.cases():
            found = share(case, Path(folder))
            shares[case.kind].append(found)
            if found < 1:
                print(f"  {case.kind}: {case.name} {found:.2f}")
    shares["all"] = [each for found in shares.values() for each in found]
    for kind, all_found in shares.items():
        print(f"{kind:10} {sum(all_found) / len(all_found):.3f} of {len(all_found)} documents")


if __name__ == "__main__":
    typer.run(main)
