"""How a derived index follows the catalogue: by the journal day by day, by comparing ids when the two disagree.

Everything here may be done twice: an index is told of a change before it is marked as known, so a kill between the two
repeats work and loses nothing. All functions block: call them in a thread.
"""

from collections.abc import Callable, Iterable, Iterator

from sleuth.tools.search import Index
from sleuth.tools.storage import Catalogue

# Passages written at a time: large enough for well-filled embedding batches, small enough to show progress.
_BATCH = 256
_JOURNAL_PAGE = 512

OnIndexed = Callable[[int], None]


def catch_up(catalogue: Catalogue, index: Index, *, on_indexed: OnIndexed) -> None:
    """Applies the journal from where the index is up to its end."""
    seq = index.applied()
    if index.reached() > catalogue.head():  # an older catalogue was put back: nothing in the index can be trusted
        index.clear()
        seq = 0
    while changes := catalogue.changes(seq, limit=_JOURNAL_PAGE):
        # Only what holds now matters: a passage that came and went again is never embedded.
        seq = changes[-1].seq
        index.set_reached(seq)
        _bring(catalogue, index, dict.fromkeys(id_ for change in changes for id_ in change.passage_ids), on_indexed)
        index.set_applied(seq)


def mend(catalogue: Catalogue, index: Index, *, on_indexed: OnIndexed) -> str | None:
    """Makes an index equal to the catalogue where their numbers of passages differ; says in a line what it found."""
    if index.count() == catalogue.count_passages():
        return None
    have, want = index.ids(), catalogue.passage_ids()
    missing, left_over = sorted(want - have), sorted(have - want)
    _bring(catalogue, index, [*left_over, *missing], on_indexed)
    return f"{index.name}: {len(missing)} passages were missing and {len(left_over)} left over; mended."


def forget_deleted(catalogue: Catalogue, index: Index) -> None:
    """Takes out what the catalogue no longer has, and puts nothing in: for an index that is not in use."""
    _bring(catalogue, index, sorted(index.ids() - catalogue.passage_ids()), lambda _passages: None)


def _bring(catalogue: Catalogue, index: Index, ids: Iterable[str], on_indexed: OnIndexed) -> None:
    for part in _parts(list(ids)):
        present = catalogue.passages(part)
        kept = {passage.id for passage in present}
        index.apply(upsert=present, delete=[id_ for id_ in part if id_ not in kept])
        on_indexed(len(present))


def _parts(ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), _BATCH):
        yield ids[start : start + _BATCH]
