"""Web pages that come with a question: their text and tables, in chunks, searched, and fetched where asked for."""
