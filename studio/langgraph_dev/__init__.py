"""The methods in LangGraph Studio (`langgraph dev`)."""
