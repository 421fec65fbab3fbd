"""The HTTP server of `sleuth serve`: chat page, runs, documents and the OpenAI-compatible API."""
