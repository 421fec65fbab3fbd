"""`sleuth serve`: runs, documents and chat over HTTP."""
