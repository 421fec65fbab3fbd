"""Reading of files: formats, corpora, chunking and the worker process that isolates parsers."""
