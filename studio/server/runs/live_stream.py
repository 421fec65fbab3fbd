"""What is being said in runs while their replies are written: handed to those who listen at the moment, kept nowhere.

A run is never held up: a reader that does not keep up is told less, and so is one that comes late.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sleuth.graphs.core import Delta, Reset, Step

PATIENCE = 100_000
"""Characters that wait for a reader at most."""

Said = Delta | Reset


class Ear:
    """One reader of a run: a bell that wakes it, and what it has still to be told of what is being said."""

    def __init__(self, *, deaf: bool) -> None:
        """A `deaf` one reads what is kept, and nothing else."""
        self.deaf = deaf
        self.bell = asyncio.Event()
        self.news = True
        self._waiting: deque[tuple[int, Said]] = deque()
        self._size = 0
        self._missed: set[str] = set()

    def ring(self) -> None:
        """Something new is kept, or the run has ended."""
        self.news = True
        self.bell.set()

    def hear(self, said: Said, after: int) -> None:
        """Takes what is said after the event of this number; where too much waits, it is dropped and taken back."""
        if self.deaf or (isinstance(said, Delta) and said.call in self._missed):
            return
        self._missed.discard(said.call)
        self._waiting.append((after, said))
        self._size += len(said.text) if isinstance(said, Delta) else 0
        if self._size > PATIENCE:
            self._drop()
        self.bell.set()

    def take(self, upto: int) -> Iterator[Said]:
        """What was said up to the event after this number; words of one call that follow each other come together."""
        held: Said | None = None
        while self._waiting and self._waiting[0][0] <= upto:
            _, said = self._waiting.popleft()
            self._size -= len(said.text) if isinstance(said, Delta) else 0
            joined = _joined(held, said)
            if held and not joined:
                yield held
            held = joined or said
        if held:
            yield held

    def _drop(self) -> None:
        """Forgets all that waits; of these calls nothing more is told, unless they begin anew."""
        lost = {said.call: (after, reset_of(said)) for after, said in self._waiting}
        self._waiting = deque(sorted(lost.values(), key=lambda each: each[0]))
        self._missed |= lost.keys()
        self._size = 0


class Ears:
    """Who listens to which run, and what was said so far in the calls of the steps that are at work."""

    def __init__(self) -> None:
        self._ears: dict[str, set[Ear]] = {}
        self._so_far: dict[str, dict[str, tuple[int, Said]]] = {}

    @contextmanager
    def at(self, thread: str, *, deaf: bool, again: bool) -> Iterator[Ear]:
        """An ear at a thread. It is told what was said so far; `again`: after taking back what it may have heard."""
        ear = Ear(deaf=deaf)
        for after, said in self._so_far.get(thread, {}).values():
            if again:
                ear.hear(reset_of(said), after)
            if isinstance(said, Delta):
                ear.hear(said, after)
        self._ears.setdefault(thread, set()).add(ear)
        try:
            yield ear
        finally:
            self._ears[thread].discard(ear)
            if not self._ears[thread]:
                del self._ears[thread]

    def listening(self, thread: str) -> bool:
        """Whether anybody hears what is said."""
        return any(not ear.deaf for ear in self._ears.get(thread, ()))

    def say(self, thread: str, said: Said, *, after: int) -> None:
        """Tells those who listen."""
        so_far = self._so_far.setdefault(thread, {})
        _, before = so_far.get(said.call, (0, None))
        so_far[said.call] = (after, _joined(before, said) or said)
        for ear in self._ears.get(thread, ()):
            ear.hear(said, after)

    def stands(self, thread: str, step: Step) -> None:
        """A step has ended: its result is told instead of what was said in it."""
        so_far = self._so_far.get(thread, {})
        for call, (_, said) in [*so_far.items()]:
            if (said.thread, said.node) == (step.thread, step.node):
                del so_far[call]

    def ring(self, thread: str) -> None:
        """Wakes those who follow a thread."""
        for ear in self._ears.get(thread, ()):
            ear.ring()

    def hush(self, thread: str) -> None:
        """The run has ended: nothing more is said."""
        self._so_far.pop(thread, None)


def _joined(first: Said | None, second: Said) -> Delta | None:
    """Both as one, if they are words of one call."""
    if isinstance(first, Delta) and isinstance(second, Delta) and first.call == second.call:
        return replace(first, text=first.text + second.text)
    return None


def reset_of(said: Said) -> Reset:
    """What takes back all that was told of a call."""
    return Reset(
        thread=said.thread,
        node=said.node,
        role=said.role,
        call=said.call,
        method=said.method,
        part_of=said.part_of,
    )
