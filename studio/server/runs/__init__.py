"""Runs of the server: worker, queue, event log, live streams, conversations."""

from sleuth.studio.server.runs.conversations import Conversations, FollowUp
from sleuth.studio.server.runs.event_log import Event, EventLog
from sleuth.studio.server.runs.openai_completion import ChatCompletionBuilder, RunFailed
from sleuth.studio.server.runs.worker import RunWorker

__all__ = ["ChatCompletionBuilder", "Conversations", "Event", "EventLog", "FollowUp", "RunFailed", "RunWorker"]
