"""Model calls of a node: fit the prompt, send it, parse the reply, record the cost."""

from sleuth.agents.model_calls.caller import CallRecord, ModelCaller, messages
from sleuth.agents.model_calls.logprobs import first_token_probability, perplexity
from sleuth.agents.model_calls.output_parsing import Unparsable, parse

__all__ = ["CallRecord", "ModelCaller", "Unparsable", "first_token_probability", "messages", "parse", "perplexity"]
