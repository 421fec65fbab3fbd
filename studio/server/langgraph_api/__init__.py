"""LangGraph Server's API under `/langgraph`: LangGraph's SDKs and `useStream` talk to the same runs as `/v1`."""

from sleuth.studio.server.langgraph_api.routing import router

__all__ = ["router"]
