"""The real servers that integration tests share."""

from postgres_fixture import postgres_url
from vllm_fixture import vllm_installed, vllm_url

__all__ = ["postgres_url", "vllm_installed", "vllm_url"]
