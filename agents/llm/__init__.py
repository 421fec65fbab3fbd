"""Client of an OpenAI-compatible model server: requests, streaming, capabilities and errors."""

from sleuth.agents.llm.answer_stream import AnswerStream, AnswerText, MessageEvents
from sleuth.agents.llm.testing import ScriptedModel
from sleuth.agents.llm.token_stream import TokenStream

__all__ = ["AnswerStream", "AnswerText", "MessageEvents", "ScriptedModel", "TokenStream"]
