"""The real servers that integration tests share."""

from chroma_fixture import chroma_url, own_chroma
from clock import clock
from page_fixture import axe, chromium, npm, page, site, teller
from postgres_fixture import own_postgres, postgres_url
from serve_fixture import client, oracle, serving
from store_fixture import database_url
from vllm_fixture import model_home, vllm_installed, vllm_url

__all__ = [
    "axe",
    "chroma_url",
    "chromium",
    "client",
    "clock",
    "database_url",
    "model_home",
    "npm",
    "oracle",
    "own_chroma",
    "own_postgres",
    "page",
    "postgres_url",
    "serving",
    "site",
    "teller",
    "vllm_installed",
    "vllm_url",
]
