"""Runs of the server: worker, queue, event log, live streams, conversations.

The worker is imported from its module: it needs the extra `serve`, and `sleuth runs` uses the rest without it.
"""

from sleuth.studio.server.runs.conversations import Conversations, FollowUp
from sleuth.studio.server.runs.event_log import Event, EventLog
from sleuth.studio.server.runs.openai_completion import ChatCompletionBuilder, RunFailed
from sleuth.studio.server.runs.openai_response import ResponseBuilder

__all__ = ["ChatCompletionBuilder", "Conversations", "Event", "EventLog", "FollowUp", "ResponseBuilder", "RunFailed"]
