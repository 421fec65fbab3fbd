"""Client of an OpenAI-compatible model server: requests, streaming, capabilities and errors."""
