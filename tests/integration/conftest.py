"""The real servers that integration tests share."""

from postgres_fixture import postgres_url
from store_fixture import database_url
from vllm_fixture import vllm_installed, vllm_url

__all__ = ["database_url", "postgres_url", "vllm_installed", "vllm_url"]
