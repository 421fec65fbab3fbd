"""Documents that are almost the same."""

from collections.abc import Sequence
from itertools import pairwise
from random import Random

import pytest
from entries import entry

from sleuth.tools.collection.duplicates import LEAST, find_duplicates, hash_runs, similarity_of
from sleuth.tools.storage.catalogue import Catalogue


def words(seed: int, number: int = 400) -> list[str]:
    random = Random(seed)
    return [f"w{random.randrange(5_000)}" for _ in range(number)]


def changed(given: Sequence[str], number: int) -> str:
    """Return the words, of which the first ones, far from each other, are others."""
    found = list(given)
    for at in range(number):
        found[at * 10] = f"other{at}"
    return " ".join(found)


def put(catalogue: Catalogue, texts: dict[str, str]) -> None:
    catalogue.put_documents([entry(name, text) for name, text in texts.items()])


def test_near_duplicates_are_found_in_groups_the_most_similar_first(catalogue: Catalogue) -> None:
    one, other = words(1), words(2)
    put(catalogue, {f"x{seed}": " ".join(words(seed)) for seed in range(10, 30)})
    put(catalogue, {"a": " ".join(one), "a-later": changed(one, 3), "a-latest": changed(one, 5)})
    put(catalogue, {"b": " ".join(other), "b-copy": " ".join(other).upper().replace(" ", ", ")})
    first, second = find_duplicates(catalogue)
    assert (first.documents, first.similarity) == (("b", "b-copy"), 1.0)
    assert second.documents == ("a", "a-later", "a-latest")
    assert LEAST <= second.similarity < 1


def test_group_of_a_chain_has_only_what_is_like_the_document_that_stays(catalogue: Catalogue) -> None:
    versions = [" ".join(words(1)[: 380 - 36 * at] + words(2)[: 36 * at]) for at in range(9)]
    put(catalogue, {f"v{at}": version for at, version in enumerate(versions)})
    runs = [hash_runs(version) for version in versions]
    assert all(similarity_of(one, other) >= LEAST for one, other in pairwise(runs))
    assert similarity_of(runs[0], runs[-1]) < 0.2
    groups = find_duplicates(catalogue)
    assert [group.documents for group in groups] == [("v0", "v1"), ("v2", "v3"), ("v4", "v5"), ("v6", "v7")]


def test_groups_and_their_documents_are_in_order(catalogue: Catalogue) -> None:
    put(catalogue, {f"{text}{name}": " ".join(words(text)) for text in (3, 2, 1) for name in "cab"})
    groups = [group.documents for group in find_duplicates(catalogue)]
    assert groups == [("1a", "1b", "1c"), ("2a", "2b", "2c"), ("3a", "3b", "3c")]


@pytest.mark.parametrize(("number", "is_found"), [(6, True), (16, False)])
def test_similarity_decides_and_is_exact(catalogue: Catalogue, number: int, is_found: bool) -> None:
    text = words(1)
    put(catalogue, {"a": " ".join(text), "b": changed(text, number)})
    similarity = similarity_of(hash_runs(" ".join(text)), hash_runs(changed(text, number)))
    lost = 1 + 5 * (number - 1)  # runs of five words with one of those; of the first word only one
    assert similarity == (396 - lost) / (396 + lost)
    assert [(group.documents, group.similarity) for group in find_duplicates(catalogue)] == (
        [(("a", "b"), similarity)] if is_found else []
    )


@pytest.mark.parametrize(
    "texts",
    [
        {"a": "Kelp Fair", "b": "kelp fair!"},
        {"a": "今日は市場で海藻の祭りがあります", "b": "今日は市場で海藻の祭りがあります。"},
    ],
)
def test_short_and_unspaced_texts_are_compared(catalogue: Catalogue, texts: dict[str, str]) -> None:
    put(catalogue, {**texts, "c": "Something else"})
    assert [group.documents for group in find_duplicates(catalogue)] == [("a", "b")]


def test_collection_without_documents_has_no_duplicates(catalogue: Catalogue) -> None:
    assert find_duplicates(catalogue) == []
