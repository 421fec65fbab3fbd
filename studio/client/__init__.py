"""The Python API: open a home, ask, stream, resume."""

from sleuth.studio.client.sleuth import (
    DEFAULT_METHOD,
    NamedModel,
    Sleuth,
    build_services,
    client_class,
    last_answer,
    open_services,
    open_sleuth,
)

__all__ = [
    "DEFAULT_METHOD",
    "NamedModel",
    "Sleuth",
    "build_services",
    "client_class",
    "last_answer",
    "open_services",
    "open_sleuth",
]
