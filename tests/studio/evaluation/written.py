"""Helper that writes a questions file."""

from collections.abc import Callable
from pathlib import Path

Write = Callable[..., Path]
