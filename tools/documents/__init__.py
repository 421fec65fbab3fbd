"""Reading of files: formats, corpora, chunking and the worker process that isolates parsers."""

from sleuth.tools.documents.chunking import split
from sleuth.tools.documents.corpus import CorpusLine, is_corpus, read_corpus
from sleuth.tools.documents.file_list import Item, find_files, list_files
from sleuth.tools.documents.formats.content import at_words, quote_location
from sleuth.tools.documents.formats.plain_formats import decode_html, html_title, parse_html, whole_page
from sleuth.tools.documents.loading import FileReader, LoadedDocument, Loaders, read_bytes, read_original
from sleuth.tools.documents.parallel_reading import LocalWorkers, Workers, default_workers, read_ahead
from sleuth.tools.documents.resource_limits import BOUNDS, Bounds, printable
from sleuth.tools.documents.versions import LEAST_SHARED, VersionedName, parse_name, shared_text
from sleuth.tools.documents.worker import Worker, WorkerError

__all__ = [
    "BOUNDS",
    "LEAST_SHARED",
    "Bounds",
    "CorpusLine",
    "FileReader",
    "Item",
    "LoadedDocument",
    "Loaders",
    "LocalWorkers",
    "VersionedName",
    "Worker",
    "WorkerError",
    "Workers",
    "at_words",
    "decode_html",
    "default_workers",
    "find_files",
    "html_title",
    "is_corpus",
    "list_files",
    "parse_html",
    "parse_name",
    "printable",
    "quote_location",
    "read_ahead",
    "read_bytes",
    "read_corpus",
    "read_original",
    "shared_text",
    "split",
    "whole_page",
]
