"""What people touch: the command line, the Python interface, LangGraph Studio, the embedded model server."""
