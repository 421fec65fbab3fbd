"""The connection of this process to a Ray cluster."""

import os
from types import ModuleType

from sleuth.tools.errors import UsageError
from sleuth.tools.optional_imports import extra

RETRIES = 20
"""Repetitions of a task whose worker was killed."""


def connect(address: str) -> ModuleType:
    """Return Ray, connected to a cluster.

    Args:
        address: `HOST:PORT` of the head node, `ray://HOST:PORT` of its client server, or `local` for a cluster of
            processes on this machine.

    Raises:
        UsageError: the extra is not installed, or no cluster answers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # else Ray reports its use to its makers
    with extra("ray", "A Ray cluster"):
        import ray
    if not ray.is_initialized():
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            raise UsageError(
                f"No Ray cluster answers at {address}: {error}. Start one with `ray start --head`, or check --ray."
            ) from error
    return ray
