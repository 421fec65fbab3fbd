"""Errors that a person can fix, and the imports of extras and parts that may be missing.

SleuthError
├── UsageError            a wrong argument, name or value (exit status 2)
│   └── UnknownName       an unknown method, thread, checkpoint or document; names the nearest one
├── MissingExtra          a package of an extra is not installed
│   └── MissingPart       a part of sleuth is not installed
├── DocumentError         one file or document cannot be read; the others are
├── StoreError            the catalogue, an index or the checkpoint store cannot be used
│   ├── StoreBusy         another process holds the lock; the message names it
│   ├── StoreTooNew       written by a newer release
│   ├── StoreDamaged      a stored row or value that no release wrote
│   └── EmbedderChanged   the collection was embedded by another model
├── ModelError            the model server cannot be used
│   ├── ModelUnavailable  down, overloaded or failing, after the retries
│   ├── ModelTimeout      no reply within SLEUTH_TIMEOUT
│   ├── ContextTooLong    the prompt cannot be made to fit
│   └── BadReply          a reply that cannot be parsed, after one repair
└── RunError              a run cannot start or resume
    ├── ThreadBusy        another process is running this thread
    └── QuotaUsedUp       its owner has used the daily quota
"""

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches


class SleuthError(Exception):
    """Base class; the message contains the failure, its reason and a remedy."""


class UsageError(SleuthError):
    """A wrong argument, name or value."""


class UnknownName(UsageError):
    """An unknown name, with the nearest known one."""

    def __init__(self, kind: str, name: str, known: list[str], hint: str = "") -> None:
        self.kind = kind
        name = name[:200]
        near = get_close_matches(name, known, n=1)
        guess = f" Did you mean {near[0]}?" if near else ""
        super().__init__(f"There is no {kind} {name!r}.{guess}{' ' + hint if hint else ''}")


class MissingExtra(SleuthError):
    """A package of an extra is not installed."""


class MissingPart(MissingExtra):
    """A part of sleuth is not installed."""


class DocumentError(SleuthError):
    """One file or document cannot be read."""


class StoreError(SleuthError):
    """The catalogue, an index or the checkpoint store cannot be used."""


class VectorsReplaced(StoreError):
    """The opened vectors were deleted or replaced."""


class StoreBusy(StoreError):
    """Another process holds the lock."""


class StoreTooNew(StoreError):
    """Written by a newer release."""


class StoreDamaged(StoreError):
    """A stored row or value that no release wrote."""


class EmbedderChanged(StoreError):
    """The collection was embedded by another model."""


class ModelError(SleuthError):
    """The model server cannot be used."""


class ModelUnavailable(ModelError):
    """Down, overloaded or failing, after the retries."""


class ModelTimeout(ModelError):
    """No reply within the time allowed for a call."""


class ContextTooLong(ModelError):
    """The prompt cannot be made to fit the model's context."""


class BadReply(ModelError):
    """A reply that cannot be parsed, after one repair; `reply` is its whole text."""

    def __init__(self, message: str, reply: str = "") -> None:
        super().__init__(message)
        self.reply = reply


class RunError(SleuthError):
    """A run cannot start or resume."""


class ThreadBusy(RunError):
    """Another process is running this thread."""


class QuotaUsedUp(RunError):
    """The owner has used the daily quota."""


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


@contextmanager
def needs_part(name: str, what: str) -> Iterator[None]:
    """Wrap the imports of modules of a part of sleuth (`parts.toml`), which `what` needs.

    Raises:
        MissingPart: the part is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("sleuth."):
            raise
        lack = f"{what} needs the part {name}, and {error.name} is missing"
        raise MissingPart(f"{lack}. Install {DISTRIBUTION} with all its parts.") from error
