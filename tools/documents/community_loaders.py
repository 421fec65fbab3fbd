"""Further file formats, by the loader classes of langchain-community; only classes named in a setting are used."""

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from textwrap import shorten
from types import ModuleType
from typing import TYPE_CHECKING

from sleuth.tools.documents.formats.content import Content, Section
from sleuth.tools.errors import DocumentError, UnknownName, extra

if TYPE_CHECKING:
    from langchain_core.document_loaders import BaseLoader

_REASON_CHARS = 200


def check_names(names: Iterable[str]) -> None:
    """Raise UnknownName, with the most similar names, for an unknown loader class.

    Raises:
        MissingExtra: the extra `loaders` is not installed.
    """
    for name in names:
        _find(name)


def read_with(name: str, path: Path) -> Content:
    """Return title and text of a file as read by the loader class; parts, such as pages, become paragraphs.

    Raises:
        DocumentError: the class cannot read the file, or needs a package that is not installed.
        UnknownName: the class does not exist.
        MissingExtra: the extra `loaders` is not installed.
    """
    module = _find(name)
    try:
        loader: Callable[[str], BaseLoader] = getattr(module, name)
        parts = loader(str(path)).load()
    except ImportError as error:
        raise DocumentError(f"{name} needs a package: {_reason(error)}. Install it, or convert the file.") from error
    except Exception as error:
        raise DocumentError(
            f"{name} cannot read it ({type(error).__name__}: {_reason(error)}). Repair it, or leave it out."
        ) from error
    title = next((str(part.metadata["title"]) for part in parts if part.metadata.get("title")), None)
    return Content(title, [Section("\n\n".join(part.page_content for part in parts))])


def _find(name: str) -> ModuleType:
    """Return the module of the loader classes; a class is imported when it is accessed."""
    with warnings.catch_warnings():
        # The package warns of its retirement at import, which does not concern users.
        warnings.simplefilter("ignore", DeprecationWarning)
        with extra("loaders", "SLEUTH_LOADERS"):
            from langchain_community import document_loaders
    if name not in document_loaders.__all__:
        raise UnknownName("loader class", name, document_loaders.__all__, "SLEUTH_LOADERS takes them by name.")
    return document_loaders


def _reason(error: Exception) -> str:
    """Return an exception's message, in a line of limited length."""
    return shorten(str(error), _REASON_CHARS, placeholder=" …").rstrip(".") or "no reason given"
