"""The embedded models on vLLM's CPU build: installed, downloaded, converted, started and stopped."""
