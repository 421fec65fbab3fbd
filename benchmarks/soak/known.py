"""State that the soak test's server has acknowledged, and its comparison with the present state."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx

Call = Callable[..., Awaitable[httpx.Response]]
Answer = dict[str, Any]


class Known:
    """Documents by their names, and the runs, each with its answer once it has one."""

    def __init__(self) -> None:
        self.runs: dict[str, Answer | None] = {}
        self._texts: dict[str, set[str | None]] = {}
        self._at_work: Counter[str] = Counter()

    @contextmanager
    def changing(self, wanted: Mapping[str, str | None]) -> Iterator[None]:
        """Record texts while a client uploads or deletes (None) them; any of concurrent changes may be last."""
        for name, text in wanted.items():
            self._texts[name] = {text} | (self._texts[name] if self._at_work[name] else set())
        self._at_work.update(list(wanted))
        try:
            yield
        finally:
            self._at_work.subtract(list(wanted))

    def alone(self, name: str) -> bool:
        """Return whether what is done to this name is done by one client."""
        return len(self._texts[name]) == 1

    def there(self) -> list[str]:
        """Documents that are there, whatever happens to them now."""
        return [name for name, may in self._texts.items() if None not in may]

    def texts(self, shown: Mapping[str, str]) -> list[str]:
        """Compare the documents shown with the known ones, by name; remember the former and return the differences."""
        wrong = []
        for name in {**self._texts, **shown}:
            may, text = self._texts.get(name, {None}), shown.get(name)
            if text not in may:
                wrong.append(f"{name} is {'gone' if text is None else 'back' if may == {None} else 'another text'}")
            self._texts[name] = {text}
        return wrong


async def documents(known: Known, call: Call, probes: int) -> tuple[Counter[str], list[str]]:
    """Compare the list of documents, each text and some searches; return counts and differences."""
    listed = (await call("GET", "/v1/documents?limit=1000")).json()
    ids = {row["source"]: row["id"] for row in listed}
    wrong = [] if len(ids) == len(listed) else [f"{len(listed)} documents have {len(ids)} names"]
    shown = {name: (await call("GET", f"/v1/documents/{id_}")).json()["text"] for name, id_ in ids.items()}
    wrong += known.texts(shown)
    for name in list(shown)[:: max(1, len(shown) // probes)] if probes else ():
        for mode in ("keyword", "dense"):
            hits = (await call("GET", "/v1/search", params={"q": shown[name], "mode": mode, "k": 10})).json()
            found = {hit["document"] for hit in hits}
            wrong += [] if ids[name] in found else [f"{name} is not found by {mode} search"]
            wrong += [f"{mode} search finds {id_}, which is gone" for id_ in found - set(ids.values())]
    return Counter({"documents compared": len(shown)}), wrong


def runs(known: Known, listed: Sequence[dict[str, Any]], pruned: int) -> list[str]:
    """Return the differences in the list of runs after some were pruned; only the server knows which ones."""
    there = {row["id"] for row in listed}
    wrong = [f"run {id_} was removed, and is listed" for id_ in there - known.runs.keys()]
    gone = known.runs.keys() - there
    wrong += [f"{len(gone)} runs are gone, and {pruned} were pruned"] if len(gone) != pruned else []
    wrong += [f"run {row['id']} is {row['status']}" for row in listed if row["status"] != "done"]
    known.runs = {id_: answer for id_, answer in known.runs.items() if id_ in there}
    return wrong
