"""Ingest of a folder with 120 files in 21 formats: what is read, what is not and why, and the place of a quote in each.

    python -m benchmarks.file_formats OUT FOLDER...

70 files are made from the articles of `examples/corpus`, up to 50 more are copied from below the FOLDERs, such as
/usr/share and a virtual environment: at most six of each suffix, the smallest first. OUT is filled and ingested into a
home of its own, without vectors.
"""

import argparse
import asyncio
import json
import shutil
import zipfile
from collections import Counter
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path
from xml.sax.saxutils import escape

import docx
import openpyxl
import pptx
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate

import sleuth
from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.collection import Collection

CORPUS = Path(__file__).parents[1] / "examples" / "corpus"
FOUND = (
    *[".pdf", ".docx", ".pptx", ".odt", ".epub", ".ipynb", ".rst", ".md", ".html", ".csv", ".tsv", ".msg", ".zip"],
    "",
)
MOST_OF_A_KIND, MOST_FOUND = 6, 50

Article = tuple[str, str]
"""A title and a text."""

ODF = "urn:oasis:names:tc:opendocument:xmlns"
SPACES = {"office": "office", "text": "text", "table": "table", "draw": "drawing"}


def zipped(path: Path, entries: dict[str, str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def as_pdf(path: Path, articles: list[Article]) -> None:
    styles, parts = getSampleStyleSheet(), []
    for title, text in articles:
        parts += [
            Paragraph(escape(title), styles["Heading1"]),
            Paragraph(escape(text), styles["BodyText"]),
            PageBreak(),
        ]
    SimpleDocTemplate(str(path), title=articles[0][0]).build(parts)


def as_docx(path: Path, articles: list[Article]) -> None:
    document = docx.Document()
    for title, text in articles:
        document.add_heading(title)
        document.add_paragraph(text)
    document.save(str(path))


def as_pptx(path: Path, articles: list[Article]) -> None:
    shown = pptx.Presentation()
    for title, text in articles:
        slide = shown.slides.add_slide(shown.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = title, text
    shown.save(str(path))


def as_xlsx(path: Path, articles: list[Article]) -> None:
    book = openpyxl.Workbook()
    for number, (title, text) in enumerate(articles):
        sheet = book.create_sheet(f"Sheet {number + 1}") if number else book.worksheets[0]
        sheet.append(["Article", "Sentence"])
        for sentence in text.split(". "):
            sheet.append([title, sentence])
    book.save(path)


def odf(path: Path, body: str) -> None:
    names = " ".join(f'xmlns:{name}="{ODF}:{space}:1.0"' for name, space in SPACES.items())
    content = f"<office:document-content {names}><office:body>{body}</office:body></office:document-content>"
    zipped(path, {"content.xml": content})


def as_odt(path: Path, articles: list[Article]) -> None:
    body = "".join(f"<text:h>{escape(title)}</text:h><text:p>{escape(text)}</text:p>" for title, text in articles)
    odf(path, f"<office:text>{body}</office:text>")


def as_odp(path: Path, articles: list[Article]) -> None:
    pages = "".join(f"<draw:page><text:p>{escape(f'{title}. {text}')}</text:p></draw:page>" for title, text in articles)
    odf(path, f"<office:presentation>{pages}</office:presentation>")


def as_ods(path: Path, articles: list[Article]) -> None:
    rows = [("Article", "Text"), *articles]
    cells = [
        "".join(f"<table:table-cell><text:p>{escape(cell)}</text:p></table:table-cell>" for cell in row) for row in rows
    ]
    body = "".join(f"<table:table-row>{row}</table:table-row>" for row in cells)
    odf(path, f'<office:spreadsheet><table:table table:name="All">{body}</table:table></office:spreadsheet>')


def as_rtf(path: Path, articles: list[Article]) -> None:
    encoded = "".join(f"\\par {title}\\par {text}" for title, text in articles)
    path.write_text("{\\rtf1\\ansi " + "".join(c if ord(c) < 128 else f"\\u{ord(c)}?" for c in encoded) + "}")


def as_epub(path: Path, articles: list[Article]) -> None:
    items = "".join(f'<item id="c{at}" href="c{at}.xhtml"/>' for at in range(len(articles)))
    spine = "".join(f'<itemref idref="c{at}"/>' for at in range(len(articles)))
    package = (
        f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest><spine>{spine}</spine></package>'
    )
    container = '<container><rootfiles><rootfile full-path="book.opf"/></rootfiles></container>'
    chapters = {f"c{at}.xhtml": as_page(article) for at, article in enumerate(articles)}
    zipped(path, {"META-INF/container.xml": container, "book.opf": package, **chapters})


def as_page(article: Article) -> str:
    title, text = map(escape, article)
    return f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>{text}</p></body></html>"


def as_eml(path: Path, articles: list[Article]) -> None:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = "Rosa <rosa@example.org>", "ed@example.org", articles[0][0]
    mail["Date"] = "Mon, 03 Jun 2024 10:00:00 +0000"
    mail.set_content("\n\n".join(text for _, text in articles))
    path.write_bytes(bytes(mail))


def as_ipynb(path: Path, articles: list[Article]) -> None:
    cells = [{"cell_type": "markdown", "source": f"# {title}\n\n{text}"} for title, text in articles]
    path.write_text(json.dumps({"cells": cells, "metadata": {}}))


def as_text(form: Callable[[Article], str]) -> Callable[[Path, list[Article]], None]:
    return lambda path, articles: path.write_text("\n\n".join(map(form, articles)), encoding="utf-8") and None


def as_table(separator: str) -> Callable[[Path, list[Article]], None]:
    quoted = as_text(lambda article: separator.join(f'"{cell}"' for cell in article))
    return lambda path, articles: quoted(path, [("Article", "Text"), *articles])


def as_zip(path: Path, articles: list[Article]) -> None:
    zipped(path, {f"inner/{at}.md": f"# {title}\n\n{text}" for at, (title, text) in enumerate(articles)})


FORMATS: dict[str, Callable[[Path, list[Article]], None]] = {
    ".pdf": as_pdf,
    ".docx": as_docx,
    ".pptx": as_pptx,
    ".xlsx": as_xlsx,
    ".odt": as_odt,
    ".odp": as_odp,
    ".ods": as_ods,
    ".rtf": as_rtf,
    ".epub": as_epub,
    ".eml": as_eml,
    ".ipynb": as_ipynb,
    ".zip": as_zip,
    ".csv": as_table(","),
    ".tsv": as_table("\t"),
    ".md": as_text(lambda article: f"# {article[0]}\n\n{article[1]}"),
    ".html": as_text(as_page),
    ".rst": as_text(lambda article: f"{article[0]}\n{'=' * len(article[0])}\n\n{article[1]}"),
    ".adoc": as_text(lambda article: f"= {article[0]}\n\n{article[1]}"),
    ".txt": as_text(lambda article: f"{article[0]}\n\n{article[1]}"),
    ".py": as_text(lambda article: f'"""{article[0]}: {article[1]}"""'),
    "": as_text(lambda article: f"{article[0]}\n\n{article[1]}"),
}


def articles() -> list[Article]:
    found = []
    for path in sorted(CORPUS.glob("*.md")):
        heading, _, text = path.read_text(encoding="utf-8").partition("\n")
        found.append((heading.lstrip("# "), " ".join(text.replace('"', "'").split())))
    return found


def make(folder: Path) -> dict[str, tuple[str, str]]:
    """Write files made from articles; return one name of each suffix with a quote from its last article."""
    source, quotes = articles(), {}
    (folder / "made").mkdir(parents=True)
    for number, (suffix, write) in enumerate(70 * [*FORMATS.items()]):
        if number == 70:
            break
        chosen = [source[(3 * number + at) % len(source)] for at in range(3)]
        path = folder / "made" / f"file{number}{suffix}"
        write(path, chosen)
        quotes[suffix] = path.name, chosen[-1][1].split(". ")[0][:60]
    return quotes


def copy_found(folder: Path, roots: list[Path]) -> int:
    (folder / "found").mkdir()
    kinds, copied = Counter[str](), 0
    files = (path for root in roots for path in root.rglob("*") if path.suffix.lower() in FOUND and path.is_file())
    for path in sorted(files, key=lambda path: (path.stat().st_size, str(path))):
        kind = path.suffix.lower()
        if path.stat().st_size < 500 or kinds[kind] == MOST_OF_A_KIND or copied == MOST_FOUND:
            continue
        kinds[kind] += 1
        copied += 1
        shutil.copy(path, folder / "found" / f"{kinds[kind]}-{path.name}")
    return copied


async def main(out: Path, roots: list[Path]) -> None:
    quotes = make(out / "files")
    print(f"70 files made, {copy_found(out / 'files', roots)} found")
    settings, problems = sleuth.Settings(home=out / "home", embedder="none"), []
    report = await ingest([out / "files"], settings=settings, on_progress=lambda at: problems.append(at.failure))
    print(f"{report.added} documents, {report.passages} passages, {report.failed} failed,", end=" ")
    print(f"{len(report.passed_over)} passed over")
    for line in [*filter(None, problems), *report.passed_over]:
        print("not read:", line.replace(str(out / "files"), "")[:150])
    await show_places(settings, quotes)


async def show_places(settings: sleuth.Settings, quotes: dict[str, tuple[str, str]]) -> None:
    async with await Collection.open(settings) as collection:
        counts = Counter(Path(listed.id).suffix for listed in await collection.documents(limit=10_000))
        print(f"{'suffix':8}{'documents':>10}  place of a quote")
        for suffix, (name, quote) in sorted(quotes.items()):
            ids = [each.id for each in await collection.documents(limit=10_000) if each.id.startswith(f"made/{name}")]
            passages = [passage for id_ in ids for passage in await collection.passages_of(id_)]
            found = [each for each in passages if quote in " ".join(each.text.replace("\\|", "|").split())]
            place = found[0].location or found[0].document_id if found else "QUOTE NOT FOUND"
            print(f"{suffix or '(none)':8}{counts[suffix]:10}  “{quote}”: {place}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("folders", type=Path, nargs="*")
    given = parser.parse_args()
    asyncio.run(main(given.out, given.folders))
