"""LangGraph Studio (`langgraph dev`): graphs, checkpointer, mounted routes."""
