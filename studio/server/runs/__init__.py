"""Runs of the server: worker, queue, event log and live streams."""

from sleuth.studio.server.runs.conversations import Conversations, FollowUp
from sleuth.studio.server.runs.event_log import Event, EventLog
from sleuth.studio.server.runs.openai_completion import Completing, RunFailed
from sleuth.studio.server.runs.worker import Jobs

__all__ = ["Completing", "Conversations", "Event", "EventLog", "FollowUp", "Jobs", "RunFailed"]
