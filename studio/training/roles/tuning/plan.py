"""How a model is tuned: what a step is, how large, and what counts in it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sleuth.studio.training.roles.tuning.batches import Row, batches


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """How it is tuned: the adapter's rank, tokens in a batch, batches in a step, epochs, and the largest step size.

    `verdict`: the share of a reply's weight that its verdict has at least, where it has one, and `answer` the answer's
    of what is left.
    """

    rank: int = 16
    tokens: int = 2400
    batches_per_step: int = 2
    epochs: int = 1
    rate: float = 5e-4
    answer: float = 0.5
    verdict: float = 0.25
    warm_up: int = 20
    seed: int = 0
    save_every: int = 20

    def steps(self, rows: Sequence[Row]) -> list[list[list[Row]]]:
        """The batches of every step."""
        found = [
            batch
            for epoch in range(self.epochs)
            for batch in batches(rows, tokens=self.tokens, seed=self.seed + 1000 * epoch)
        ]
        return [found[at : at + self.batches_per_step] for at in range(0, len(found), self.batches_per_step)]

    def rate_at(self, step: int, steps: int) -> float:
        """Rises over the first steps, then falls along a cosine."""
        rising = min(1.0, (step + 1) / self.warm_up)
        return self.rate * rising * (1 + math.cos(math.pi * step / steps)) / 2


USUAL = Plan()
