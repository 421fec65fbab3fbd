"""Text out of PowerPoint files."""

from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import TYPE_CHECKING

from sleuth.tools.documents.formats.archives import open_zip
from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.drawing_ml import paragraphs, shape_blocks, shapes
from sleuth.tools.documents.formats.marks import HIDDEN, remark
from sleuth.tools.documents.formats.office_parts import Part
from sleuth.tools.documents.formats.word_format import office_file, office_properties
from sleuth.tools.places import Place
from sleuth.tools.text.normalization import title_from

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_NO = ("0", "false")


def read_pptx(data: bytes) -> Content:
    """Return the text, tables, charts, diagrams, descriptions of pictures, notes and comments of each slide.

    A hidden slide is marked; hidden shapes are left out.
    """
    from pptx import Presentation

    file = office_file(data, "a PowerPoint file")
    presentation = Presentation(BytesIO(file))
    with open_zip(file) as archive:
        parts = Part(archive, presentation.part.partname).of_kind("commentAuthors", "authors")
        authors = {author.get("id", ""): author.get("name", "") for part in parts for author in part.root}
        slides = [
            Section(
                "\n\n".join(_slide(slide._element, Part(archive, slide.part.partname), authors)), Place("slide", number)
            )
            for number, slide in enumerate(presentation.slides, start=1)
        ]
    title = title_from(presentation.core_properties.title)
    lines = (line for slide in slides for line in slide.text.split("\n"))
    first = next((line[3:] for line in lines if line.startswith("## ")), "")
    title = title if title and title != "PowerPoint Presentation" else title_from(first)
    return Content(title, slides, *office_properties(presentation.core_properties))


def _slide(slide: "Element", part: Part, authors: Mapping[str, str]) -> Iterator[str]:
    """Yield the blocks of a slide."""
    slide_shapes = list(shapes(slide))
    heading = next((shape for shape in slide_shapes if _placeholder(shape) in ("title", "ctrTitle")), None)
    if slide.get("show") in _NO:
        yield HIDDEN
    if heading is not None and (title := title_from(" ".join(paragraphs(heading, part)))):
        yield f"## {title}"
    for shape in slide_shapes:
        if shape is not heading:
            yield from shape_blocks(shape, part)
    for notes in part.of_kind("notesSlide"):
        bodies = (shape for shape in shapes(notes.root) if _placeholder(shape) == "body")
        yield from (f"Notes: {text}" for body in bodies if (text := "\n".join(paragraphs(body, notes))))
    for comments in part.of_kind("comments"):
        yield from _comments(comments, authors)


def _placeholder(shape: "Element") -> str:
    """Return the type of a placeholder, such as "title"; empty for another shape."""
    placeholder = shape.find("./*/{*}nvPr/{*}ph")
    return placeholder.get("type", "") if placeholder is not None else ""


def _comments(part: Part, authors: Mapping[str, str]) -> Iterator[str]:
    """Yield comments, of the newer kind with their replies."""
    for comment in part.root.iter("{*}cm", "{*}reply"):
        body = comment.find("{*}txBody")
        text = " ".join(paragraphs(body, part)) if body is not None else comment.findtext("{*}text") or ""
        yield from filter(None, [remark("Comment", text, authors.get(comment.get("authorId", ""), ""))])
