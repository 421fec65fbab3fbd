"""Synchronization of an index with the catalogue: by the journal, or by comparing ids if the two disagree.

All operations may be repeated: a change is written to an index before it is recorded as applied, so a kill in between
loses nothing. All functions block: call them in a thread.
"""

from collections.abc import Callable, Sequence

from sleuth.tools.search import Index
from sleuth.tools.storage import Catalogue

# Passages per write: enough to fill embedding batches, few enough to show progress.
_BATCH = 256
_JOURNAL_PAGE = 512

OnIndexed = Callable[[int], None]


def catch_up(catalogue: Catalogue, index: Index, *, on_indexed: OnIndexed) -> None:
    """Apply the rest of the journal to an index."""
    seq = index.applied()
    if index.reached() > catalogue.head():  # the catalogue was restored from an older backup
        index.clear()
        seq = 0
    while changes := catalogue.changes(seq, limit=_JOURNAL_PAGE):
        # Only the present state matters: a passage that was added and deleted again is never embedded.
        seq = changes[-1].seq
        index.set_reached(seq)
        changed = dict.fromkeys(id_ for change in changes for id_ in change.passage_ids)
        _update(catalogue, index, list(changed), on_indexed)
        index.set_applied(seq)


def repair(catalogue: Catalogue, index: Index, *, on_indexed: OnIndexed) -> str | None:
    """Make an index equal to the catalogue if their numbers of passages differ; return a line about it, or None.

    Passages that an ingest adds meanwhile are not a difference: they are indexed from the journal first.
    """
    while index.count() != catalogue.count_passages():
        if catalogue.head() == index.applied():
            break
        catch_up(catalogue, index, on_indexed=on_indexed)
    else:
        return None
    have, want = index.ids(), catalogue.passage_ids()
    missing, left_over = sorted(want - have), sorted(have - want)
    _update(catalogue, index, [*left_over, *missing], on_indexed)
    return f"{index.name}: {len(missing)} passages were missing and {len(left_over)} left over; repaired."


def delete_removed(catalogue: Catalogue, index: Index) -> None:
    """Delete passages that the catalogue does not have, and add none: for an index that is not in use."""
    _update(catalogue, index, sorted(index.ids() - catalogue.passage_ids()), lambda _passages: None)


def _update(catalogue: Catalogue, index: Index, ids: Sequence[str], on_indexed: OnIndexed) -> None:
    for start in range(0, len(ids), _BATCH):
        part = ids[start : start + _BATCH]
        present = catalogue.passages(part)
        kept = {passage.id for passage in present}
        index.apply(upsert=present, delete=[id_ for id_ in part if id_ not in kept])
        on_indexed(len(present))
