"""Web pages attached to a question: fetched on request, read as text and tables, chunked and searched."""
