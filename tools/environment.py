"""Variables of the environment, set only while a library reads them: the process may be another application's."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_TURN = Lock()


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Set variables of the environment for the duration of the block, in one thread at a time."""
    with _TURN:
        before = {name: os.environ[name] for name in values if name in os.environ}
        os.environ.update(values)
        try:
            yield
        finally:
            for name in values.keys() - before.keys():
                del os.environ[name]
            os.environ.update(before)
