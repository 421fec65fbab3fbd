"""A fake of Ray: its tasks run in threads, its actors in this process."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """The error that Ray raises for a failed task."""


@dataclass(frozen=True)
class Reference:
    """A value in the object store, or the result of a task."""

    result: "Future[Any]"

    def future(self) -> "Future[Any]":
        return self.result


@dataclass
class FakeRay:
    """`failure` is what tasks raise instead of running; `tasks` are the names of those that were submitted."""

    processors: int = 2
    failure: Exception | None = None
    tasks: list[str] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)
    actors: list[Any] = field(default_factory=list)
    killed: list[SimpleNamespace] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    exceptions: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(RayError=RayError))
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))

    def connect(self, _address: str) -> Any:
        return self

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.processors), "memory": 1e9}

    def remote(self, **options: Any) -> Callable[[Callable[..., Any]], SimpleNamespace]:
        self.options = options
        return lambda target: SimpleNamespace(
            remote=lambda *given: (
                self._actor(target(*given)) if isinstance(target, type) else self._start(target, given)
            )
        )

    def kill(self, actor: SimpleNamespace) -> None:
        self.killed.append(actor)

    def put(self, value: bytes) -> Reference:
        self.stored.append(len(value))
        done: Future[bytes] = Future()
        done.set_result(value)
        return Reference(done)

    def get(self, references: list[Reference]) -> list[Any]:
        return [reference.result.result() for reference in references]

    def _actor(self, made: Any) -> SimpleNamespace:
        """An actor of one method, `run`, which is a coroutine function."""
        self.actors.append(made)

        async def run(*given: Any) -> Any:
            if self.failure:
                raise self.failure
            return await made.run(*given)

        return SimpleNamespace(run=SimpleNamespace(remote=run))

    def _start(self, function: Callable[..., Any], given: tuple[Any, ...]) -> Reference:
        self.tasks.append(function.__name__)

        def run() -> Any:
            if self.failure:
                raise self.failure
            return function(*(each.result.result() if isinstance(each, Reference) else each for each in given))

        return Reference(self.threads.submit(run))
