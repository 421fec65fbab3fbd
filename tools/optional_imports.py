"""Imports of packages that come with an extra, with an error that names the extra."""

from collections.abc import Iterator
from contextlib import contextmanager

from sleuth.tools.errors import MissingExtra

DISTRIBUTION = "sleuth-rag"
"""Name of the package on the index; it is imported and run as `sleuth`."""

EXTRA_OF = {
    **dict.fromkeys(("torch", "sentence_transformers", "transformers"), "torch"),
    **dict.fromkeys(("lightgbm", "onnx", "peft", "accelerate"), "train"),
    "torch_geometric": "graph",
}
"""The extra of modules that training imports in many places: the command line names it if one is missing."""


@contextmanager
def extra(name: str, what: str) -> Iterator[None]:
    """Wrap the imports of packages that come with `sleuth-rag[name]`, which `what` needs.

    Raises:
        MissingExtra: one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtra(f"{what} needs {error.name}: pip install '{DISTRIBUTION}[{name}]'.") from error
