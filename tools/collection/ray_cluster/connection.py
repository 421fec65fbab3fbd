"""The connection of this process to a Ray cluster."""

import os
import socket
from collections.abc import Callable
from types import ModuleType
from typing import TypeAlias
from urllib.parse import urlsplit

from sleuth.tools.errors import StoreError, UsageError
from sleuth.tools.optional_imports import DISTRIBUTION, extra

RETRIES = 20
"""Repetitions of a task whose worker was killed."""
_SECONDS = 10.0
"""Time to reach the head node; Ray itself waits for minutes."""

Connect: TypeAlias = Callable[[str], ModuleType]


def connect(address: str) -> ModuleType:
    """Return Ray, connected to a cluster; the process stays connected until it ends.

    Args:
        address: `HOST:PORT` of the head node, for a machine of the cluster; `ray://HOST:PORT` of its client server for
            another one.

    Raises:
        MissingExtra: Ray is not installed.
        UsageError: no cluster answers.
    """
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # Ray reports to its makers otherwise
    with extra("ray", "A Ray cluster"):
        import ray
    if not ray.is_initialized():
        try:
            _require_listener(address)
            ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (OSError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split())[:300]
            raise UsageError(
                f"No Ray cluster answers at {address}: {reason}. Start one with `ray start --head "
                "--disable-usage-stats`, or check --ray."
            ) from error
    return ray


def _require_listener(address: str) -> None:
    """Raise OSError if nothing listens at `HOST:PORT`, ValueError if there is no port."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if not (parts.hostname and parts.port):
        raise ValueError("an address is HOST:PORT or ray://HOST:PORT")
    socket.create_connection((parts.hostname, parts.port), timeout=_SECONDS).close()


def processors(ray: ModuleType) -> int:
    """Return the number of processors of the cluster."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def cluster_failed(error: BaseException) -> StoreError:
    """Return the error for a task that failed for another reason than a killed worker."""
    cause = getattr(error, "cause", None) or error
    reason = " ".join(str(cause).split())[-300:]
    return StoreError(
        f"The Ray cluster failed: {reason}. Check that all its machines have the same versions of Python, Ray and "
        f"{DISTRIBUTION}. Rerun the command to resume."
    )
