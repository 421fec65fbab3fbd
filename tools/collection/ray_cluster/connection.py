"""The connection of this process to a Ray cluster."""

import logging
import os
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from sleuth.tools.errors import StoreError, UsageError
from sleuth.tools.optional_imports import DISTRIBUTION, extra

_log = logging.getLogger(__name__)

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
    with extra("ray", "A Ray cluster"), _explained(address):
        if find_spec("ray") is None:
            raise ModuleNotFoundError(name="ray")
        own_address = _own_address(address)
        if own_address == "127.0.0.1":
            os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # the cluster is this machine
        import ray
        from ray._private import worker

        if not ray.is_initialized():
            # Ray prints the ends of workers, whose tasks it repeats, to standard output, where results belong.
            setattr(worker, "print_to_stdstream", _log_message)  # noqa: B010 - a function of Ray's
            options: dict[str, Any] = {} if address.startswith("ray://") else {"_node_ip_address": own_address}
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    return cast("ModuleType", ray)


def _log_message(data: Mapping[str, Any], **_options: bool) -> None:
    _log.info("Ray: %s", " ".join(map(str, data["lines"])))


@contextmanager
def _explained(address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise UsageError(
            f"No Ray cluster answers at {address}: {reason}. Start one with `ray start --head --disable-usage-stats`, "
            "or check --ray."
        ) from error


def _own_address(address: str) -> str:
    """Return this machine's address as the head node sees it; Ray itself asks the route to a public server.

    Raises:
        OSError: nothing listens at the address.
        ValueError: it has no port.
    """
    parts = urlsplit(address if "://" in address else f"//{address}")
    if not (parts.hostname and parts.port):
        raise ValueError("an address is HOST:PORT or ray://HOST:PORT")
    with socket.create_connection((parts.hostname, parts.port), timeout=_SECONDS) as connection:
        return str(connection.getsockname()[0])


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
