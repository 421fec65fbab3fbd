"""Client of an OpenAI-compatible model server: requests, streaming, capabilities and errors."""

from sleuth.agents.llm.testing import ScriptedModel
from sleuth.agents.llm.token_stream import AnswerStream, AnswerText, MessageEvents, TokenStream

__all__ = ["AnswerStream", "AnswerText", "MessageEvents", "ScriptedModel", "TokenStream"]
