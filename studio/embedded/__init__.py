"""The embedded default, a small model on vLLM's CPU build: installed, converted, started and stopped."""
