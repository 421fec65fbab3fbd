"""Labeled questions, and the SVM that decides by plain arithmetic."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hashing_embedder import HashingEmbedder

from sleuth.graphs.methods.hybrid_rag.question_attributes import (
    DOMAINS,
    TRAINED,
    Attributes,
    Example,
    LinearSvm,
    SvmPredictor,
    find_svm,
    packaged_examples,
    packaged_svm,
    select_demonstrations,
)
from sleuth.tools.errors import StoreError, UsageError
from training.attributes import save
from training.questions import lines

QUESTIONS = packaged_examples()


# The questions


def test_every_kind_of_question_is_there_often_and_once_only() -> None:
    cells = Counter((example.domain, example.dynamic) for example in QUESTIONS)
    assert cells.keys() == {(domain, dynamic) for domain in DOMAINS for dynamic in (False, True)}
    assert min(cells.values()) >= 40
    assert len({" ".join(example.question.lower().rstrip("?").split()) for example in QUESTIONS}) == len(QUESTIONS)


@pytest.mark.parametrize(
    "line",
    [
        *("no JSON", '{"question": "Who?", "domain": "open"}', '{"question": " ", "domain": "open", "dynamic": true}'),
        '{"question": "Who?", "domain": "art", "dynamic": true}',
    ],
)
def test_a_line_that_is_no_labelled_question_is_named(line: str, tmp_path: Path) -> None:
    file = tmp_path / "own.jsonl"
    with pytest.raises(UsageError, match=r"own\.jsonl cannot be read"):
        list(lines(file, Example))
    file.write_text(f'{{"question": "Who?", "domain": "open", "dynamic": false}}\n\n{line}\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"own\.jsonl, line 3: "):
        list(lines(file, Example))


# Demonstrations


def test_examples_are_balanced_and_attributes_independent() -> None:
    of_domains, of_change = select_demonstrations(QUESTIONS, each=5)
    assert Counter(example.domain for example in of_domains) == dict.fromkeys(DOMAINS, 5)
    assert {sum(example.dynamic for example in of_domains if example.domain == domain) for domain in DOMAINS} == {2}
    cells = Counter((example.domain, example.dynamic) for example in of_change)
    assert cells == {(domain, dynamic): 1 for domain in DOMAINS for dynamic in (False, True)}


# The SVM

SVM = LinearSvm(
    embedder="axes",
    domains=np.array([[1, 0, 0, 0.0], [0, 1, 0, 0.1], [0, 0, 1, 0.2], [-1, 0, 0, 0.3], [0, -1, 0, 0.4]]),
    dynamic=np.array([0, 0, 2.0, -1.0]),
)


def test_the_greatest_decision_value_wins() -> None:
    expected = {
        (1, 0, 0): Attributes("finance", False),
        (0, 1, 0): Attributes("sports", False),
        (0, 0, 1): Attributes("music", True),
        (-1, 0, 0.4): Attributes("movie", False),
        (0, 0, 0): Attributes("open", False),
    }
    assert {at: SVM.decide(np.array(at, dtype=np.float32)) for at in expected} == expected


def test_what_is_saved_is_read_back_and_the_same_bytes_each_time(tmp_path: Path) -> None:
    for name in ("one.npz", "two.npz"):
        save(SVM, tmp_path / name)
    with pytest.raises(UsageError, match="cannot be written"):
        save(SVM, tmp_path / "nowhere" / "svm.npz")
    again = LinearSvm.load(tmp_path / "one.npz")
    assert (again.embedder, again.domains.tolist(), again.dynamic.tolist()) == (
        SVM.embedder,
        SVM.domains.tolist(),
        SVM.dynamic.tolist(),
    )
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()


class Trap:
    """Pickled, it would make a file when it is read."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self) -> Any:
        return Path.touch, (self.made,)


def test_a_file_with_other_content_is_refused_and_nothing_in_it_is_run(tmp_path: Path) -> None:
    file, made, trap = tmp_path / TRAINED, tmp_path / "made", np.empty((), dtype=object)
    trap[()] = Trap(made)
    changes: list[dict[str, Any]] = [
        *({"labels": np.array(["finance", "sports"])}, {"labels": np.array(DOMAINS[::-1])}, {"domains": trap}),
        *({"dynamic": np.array(["a", "b", "c", "d"])}, {"embedder": None}),
    ]
    arrays = {"embedder": np.array("axes"), "labels": np.array(DOMAINS)}
    arrays |= {"domains": SVM.domains, "dynamic": SVM.dynamic}
    for changed in changes:
        np.savez(file, **{name: array for name, array in (arrays | changed).items() if array is not None})  # type: ignore[arg-type]
        with pytest.raises(StoreError, match=r"attributes\.npz is not a question classifier.*training\.attributes"):
            LinearSvm.load(file)
    for content in (b"", b"no archive", b"PK\x03\x04 half of one"):
        file.write_bytes(content)
        with pytest.raises(StoreError, match=r"attributes\.npz is not a question classifier.*training\.attributes"):
            find_svm(tmp_path, HashingEmbedder())
    assert not made.exists()


# With an embedder


async def test_it_goes_with_its_embedder_wherever_that_lies(tmp_path: Path) -> None:
    save(SVM, tmp_path / TRAINED)
    for name in ("axes", "org/Axes", "/models/axes/", "http://127.0.0.1:9/v1#axes"):
        predictor = find_svm(tmp_path, HashingEmbedder(name, dimension=3))
        assert predictor is not None, name
        assert await predictor.predict("who?") == SVM.decide(HashingEmbedder(dimension=3).embed_query("who?"))
    for other in ("mpnet", "axes-2", "http://127.0.0.1:9/v1"):
        assert find_svm(tmp_path, HashingEmbedder(other)) is None
    assert find_svm(tmp_path, None) is None


async def test_one_s_own_training_comes_before_the_package_s(tmp_path: Path) -> None:
    embedder = HashingEmbedder("all-MiniLM-L6-v2", dimension=384)
    packaged = find_svm(tmp_path, embedder)
    always = np.zeros(385)
    always[-1] = 1.0
    domains = np.stack([always * at for at in (0, 0, 1, 0, 0)])
    save(LinearSvm(embedder=embedder.name, domains=domains, dynamic=always), tmp_path / TRAINED)
    trained = find_svm(tmp_path, embedder)
    assert packaged is not None
    assert trained is not None
    assert await trained.predict("who?") == Attributes("music", True)
    assert await packaged.predict("who?") == packaged_svm().decide(embedder.embed_query("who?"))


async def test_a_namesake_with_other_vectors_is_found_out() -> None:
    predictor = SvmPredictor(SVM, HashingEmbedder("axes", dimension=8))
    with pytest.raises(StoreError, match=r"vectors of length 8.* takes 3"):
        await predictor.predict("who?")


def test_the_package_s_own_belongs_to_the_default_embedder() -> None:
    svm = packaged_svm()
    assert (svm.embedder, len(svm.dynamic)) == ("all-MiniLM-L6-v2", 385)
