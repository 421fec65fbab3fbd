"""User interfaces: command line, Python API, HTTP server, chat page, LangGraph Studio, embedded model server."""
