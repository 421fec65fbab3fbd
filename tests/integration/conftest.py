"""The real servers that integration tests share."""

from vllm_fixture import vllm_installed, vllm_url

__all__ = ["vllm_installed", "vllm_url"]
