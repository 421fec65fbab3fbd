"""The real servers that integration tests share."""

from postgres_fixture import postgres_url
from serve_fixture import client, oracle, serving
from store_fixture import database_url
from vllm_fixture import vllm_installed, vllm_url

__all__ = ["client", "database_url", "oracle", "postgres_url", "serving", "vllm_installed", "vllm_url"]
