"""Parts of Word, PowerPoint and Excel files, and their relationships to each other."""

from collections.abc import Iterator
from functools import cached_property
from posixpath import dirname, join, normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote
from zipfile import ZipFile

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
RELATED = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
"""Namespace of the attributes that name a relationship."""


class Part:
    """A part of an Office file, by its name in the archive."""

    def __init__(self, archive: ZipFile, name: str) -> None:
        self._archive = archive
        self.name = name.lstrip("/")

    @cached_property
    def data(self) -> bytes:
        """Return the bytes; empty if the file lacks the part."""
        return self._archive.read(self.name) if self.name in self._archive.NameToInfo else b""

    @cached_property
    def root(self) -> "Element":
        """Return the root of an XML part; an empty element if the part is missing or is no XML."""
        from lxml import etree

        parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
        data = self.data.replace(b"<br>", b"<br/>") if self.name.endswith(".vml") else self.data  # as Office writes it
        try:
            return etree.fromstring(data, parser)
        except etree.XMLSyntaxError:
            return etree.Element("missing")

    @cached_property
    def _relations(self) -> dict[str, tuple[str, str, bool]]:
        folder, _, name = self.name.rpartition("/")
        relations = Part(self._archive, f"{folder}/_rels/{name}.rels")
        return {
            item.get("Id", ""): (item.get("Type", ""), item.get("Target", ""), item.get("TargetMode") == "External")
            for item in relations.root.iter(_RELATION)
        }

    def address(self, relation: str | None) -> str:
        """Return the address of a link; empty if it leads into the file."""
        _, target, is_external = self._relations.get(relation or "", ("", "", False))
        return target if is_external else ""

    def related(self, relation: str | None) -> "Part":
        """Return the part with the name of a relationship."""
        _, target, _ = self._relations.get(relation or "", ("", "", False))
        return self._part(target)

    def of_kind(self, *kinds: str) -> Iterator["Part"]:
        """Yield the related parts whose type ends with one of the kinds, such as "footnotes"."""
        for kind, target, is_external in self._relations.values():
            if kind.rpartition("/")[2] in kinds and not is_external:
                yield self._part(target)

    def _part(self, target: str) -> "Part":
        name = target if target.startswith("/") else normpath(join(dirname(self.name), target))
        return Part(self._archive, name if name.lstrip("/") in self._archive.NameToInfo else unquote(name))
