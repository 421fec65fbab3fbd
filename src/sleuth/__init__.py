"""Multi-hop question answering over your own documents, as durable LangGraph state machines."""
