"""LangGraph Studio (`langgraph dev`): graphs and checkpointer."""
