"""Text out of data: JSON, lines of JSON, XML with its feeds, and subtitles."""

import json
import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.documents.formats.html_format import HIDDEN, parse_html, read_html, whole_page
from sleuth.tools.errors import DocumentError
from sleuth.tools.places import Place
from sleuth.tools.text.encodings import decode
from sleuth.tools.text.normalization import single_line, title_from

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_TIMES = re.compile(r"^[ \t]*(\d+:)?(\d{1,2}):(\d{2})[,.]\d{1,3}[ \t]+-->[^\n]*\n?", re.MULTILINE)
_VOICE = re.compile(r"<v(?:\.[^ <>]*)? ([^<>]+)>")
_MARKUP = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")
MOST_CUES = 8
"""Subtitles that are read together; fewer if one ends a sentence."""
LABELED_CHARS = 80
"""A longer text of an XML element is prose, and shown without the name of the element."""


def read_json(data: bytes) -> Content:
    """Return a line "name: value" for each value, with the objects of lists as items."""
    text = decode(data)
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        if len(text.split("\n")) == 1:
            raise
        return read_json_lines(data)
    fields = value if isinstance(value, dict) else {}
    title = next((fields[name] for name in ("title", "name") if isinstance(fields.get(name), str)), None)
    return Content(title_from(title), list(_items(value, "")))


def read_json_lines(data: bytes) -> Content:
    """Return the values of each line, as `read_json` does."""
    lines = enumerate(decode(data).split("\n"), start=1)
    return Content(
        None,
        [Section("\n".join(_lines(json.loads(line), "")), Place("line", at)) for at, line in lines if line.strip()],
    )


def _items(value: object, name: str) -> Iterator[Section]:
    """Yield the values outside lists of objects, and the objects of each list."""
    if isinstance(value, list) and any(isinstance(item, dict) for item in value):
        place = f"{name}, item" if name else "item"
        for number, item in enumerate(value, start=1):
            yield Section("\n".join(_lines(item, "")), Place(place, number))
    elif isinstance(value, dict):
        for is_list, group in groupby(value.items(), lambda pair: _has_objects(pair[1])):
            if is_list:
                for key, inner in group:
                    yield from _items(inner, f"{name}.{key}".removeprefix("."))
            else:
                yield Section("\n".join(_lines(dict(group), name)), Place(name) if name else None)
    else:
        yield Section("\n".join(_lines(value, name)))


def _has_objects(value: object) -> bool:
    """Return whether a value is a list of objects, or contains one at some depth."""
    if isinstance(value, list):
        return any(isinstance(item, dict) for item in value)
    return isinstance(value, dict) and any(map(_has_objects, value.values()))


def _lines(value: object, path: str) -> Iterator[str]:
    """Yield a line "path: value" for each value that is not empty; those of a list are on one line."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _lines(inner, f"{path}.{key}".removeprefix("."))
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value, start=1):
            yield from _lines(item, f"{path}.{number}".removeprefix("."))
    else:
        text = ", ".join(filter(None, map(_text, value))) if isinstance(value, list) else _text(value)
        if text.strip():
            yield f"{path}: {text}" if path else text


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


def read_xml(data: bytes) -> Content:
    """Return the texts of the elements, with the names of short ones; the entries of an RSS or Atom feed."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities="internal", no_network=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(data.lstrip(), parser)
    name = _name(root)
    if name == "html":
        return read_html(data)
    if name in ("rss", "RDF", "feed"):
        entries = [element for element in root.iter() if _name(element) in ("item", "entry")]
        channel = next((child for child in root if _name(child) == "channel"), root)
        return Content(title_from(_part(channel, "title")), [_entry(entry) for entry in entries])
    titles = (single_line("".join(child.itertext())) for child in root if _name(child) in ("title", "name"))
    return Content(title_from(next(titles, None)), [Section("\n\n".join(_xml_blocks(root)))])


def _name(element: "Element") -> str:
    return str(element.tag).rpartition("}")[2]


def _xml_blocks(element: "Element") -> Iterator[str]:
    """Yield a paragraph for each element with text and children, and the lines of other elements together."""
    texts = [element.text, *(child.tail for child in element)]
    if len(element) and any(text and text.strip() for text in texts):
        yield single_line("".join(element.itertext()))
        return
    heading = [_xml_line(element, "")] if element.attrib and len(element) else []
    for is_leaf, children in groupby(element, lambda child: not len(child)):
        if is_leaf:
            lines = [*heading, *(_xml_line(child, single_line(child.text or "")) for child in children)]
            heading = []
            yield "\n".join(filter(None, lines))
        else:
            yield from heading
            heading = []
            for child in children:
                yield from _xml_blocks(child)
    if not len(element):
        yield _xml_line(element, single_line(element.text or ""))


def _xml_line(element: "Element", text: str) -> str:
    """Return "name: text (attribute: value)"; the text alone if it is prose."""
    name = _name(element)
    values = {key: value for key, value in element.attrib.items() if not key.startswith("{") and value.strip()}
    about = "; ".join(f"{key}: {single_line(value)}" for key, value in values.items())
    is_prose = len(text) > LABELED_CHARS or name in ("p", "para")
    line = text if is_prose or not text else f"{name}: {text}"
    return f"{line or name} ({about})" if about else line


def _entry(entry: "Element") -> Section:
    title = title_from(_part(entry, "title")) or "without a title"
    facts = {
        "Date": _part(entry, "pubDate", "published", "date", "updated"),
        "Author": _part(entry, "creator", "author"),
        "Link": _part(entry, "link"),
        "Tags": ", ".join(filter(None, (_value(child) for child in entry if _name(child) == "category"))),
    }
    text = _part(entry, "encoded", "content", "description", "summary")
    lines = [f"## {title}", *(f"{name}: {single_line(value)}" for name, value in facts.items() if value)]
    return Section("\n".join(lines) + f"\n\n{text}", Place(f"entry “{title}”"))


def _part(element: "Element", *names: str) -> str:
    """Return the text of the first child with one of these names that has any."""
    texts = (_value(child) for name in names for child in element if _name(child) == name)
    return next(filter(None, texts), "")


def _value(element: "Element") -> str:
    """Return the text of an element of a feed, which may be HTML, or its address or name."""
    from lxml import etree

    text = (
        etree.tostring(element, encoding="unicode", with_tail=False) if len(element) else element.text or ""
    ).strip()
    if "<" in text or "&" in text:
        text = whole_page(parse_html(text), leave_out=HIDDEN)
    return text or element.get("href") or element.get("term") or ""


def read_subtitles(data: bytes) -> Content:
    """Return the text of subtitles (SRT or WebVTT) by sentences, each with the time at which it begins."""
    text = decode(data)
    times = list(_TIMES.finditer(text))
    if not times:
        raise DocumentError("has no times of subtitles (00:01:02,000 --> 00:01:05,000). Repair it, or leave it out.")
    ends = [*(cue_time.start() for cue_time in times[1:]), len(text)]
    cues = [(_time(cue_time), _cue(text[cue_time.end() : end])) for cue_time, end in zip(times, ends, strict=True)]
    return Content(None, list(_sentences(cues)))


def _time(match: re.Match[str]) -> str:
    return f"{int((match[1] or '0:')[:-1])}:{int(match[2]):02}:{match[3]}"


def _cue(text: str) -> list[str]:
    """Return the lines of a subtitle, with the names of speakers; the number of the next one follows an empty line."""
    spoken = _VOICE.sub(r"\1: ", text.strip("\n").split("\n\n")[0])
    return [line for line in map(single_line, _MARKUP.sub("", spoken).split("\n")) if line]


def _sentences(cues: Sequence[tuple[str, list[str]]]) -> Iterator[Section]:
    """Yield subtitles up to the end of a sentence; a line that the one before repeats is read once."""
    begin, lines, before = 0, list[str](), list[str]()
    for number, (_, cue) in enumerate(cues, start=1):
        begin = begin or number
        lines += [line for line in cue if line not in before]
        before = cue
        is_last = number == len(cues) or number - begin >= MOST_CUES - 1
        if lines and (is_last or lines[-1].endswith((".", "!", "?", "…", "。", '"', "”"))):
            yield Section(" ".join(lines), Place("", begin, label=cues[begin - 1][0]))
            begin, lines = 0, []
