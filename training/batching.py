"""Batches of rows of similar length: little padding, which would be computed for nothing."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

R = TypeVar("R")


def cut_batches(
    rows: Sequence[R],
    *,
    length: Callable[[R], int],
    step: int = 1,
    pool: int,
    tokens: int,
    dice: Random,
) -> list[list[R]]:
    """Return every row once, in batches within the token limit including padding (or of one row), in random order.

    Args:
        rows: the rows, in random order; consecutive ones are sorted by length before they are cut.
        length: the tokens of a row.
        step: batches are padded to a multiple of this number of tokens.
        pool: the number of rows that are sorted.
        tokens: the most tokens of a batch.
        dice: the source of the order of the batches.
    """
    found: list[list[R]] = []
    for at in range(0, len(rows), pool):
        batch: list[R] = []
        for row in sorted(rows[at : at + pool], key=length):
            if batch and -(-length(row) // step) * step * (len(batch) + 1) > tokens:
                found.append(batch)
                batch = []
            batch.append(row)
        found.append(batch)
    dice.shuffle(found)
    return found
