import bz2
import gzip
import json
from pathlib import Path

import pytest
from json_lines import write_questions, write_rows

from sleuth.studio.evaluation.data import read_questions, sample
from sleuth.tools.errors import UsageError


def test_a_question_alone_is_enough(tmp_path: Path) -> None:
    [file] = read_questions([write_questions(tmp_path, {"question": "Why?"}, "", {"question": "How?"})])
    assert [question.id for question in file.questions] == ["1", "3"]
    assert file.questions[0].answers == ()
    assert file.questions[0].hops is None


def test_line_ends_within_a_question_do_not_split_its_line(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "Who\u2028sailed\x85first?"}\n', encoding="utf-8")
    [file] = read_questions([tmp_path / "q.jsonl"])
    assert [question.question for question in file.questions] == ["Who\u2028sailed\x85first?"]


def test_everything_that_a_line_may_hold(tmp_path: Path) -> None:
    row = {
        "id": 7,
        "question": " Who? ",
        "answer": "Ann",
        "answer_aliases": ["Ann", "Anna"],
        "gold_ids": ["a", "b", "a"],
        "type": "2hop",
        "decomposition": [{"question": "x", "answer": 1907, "gold_id": "a"}, {"question": "y", "answer": "Ann"}],
        "evidence_triples": [["s", "p", "o"]],
        "level": "hard",
    }
    [file] = read_questions([write_questions(tmp_path, row)])
    question = file.questions[0]
    assert (question.key, question.question) == ("questions/7", "Who?")
    assert question.answers == ("Ann", "Anna")
    assert question.gold == ("a", "b")
    assert [hop.answer for hop in question.decomposition] == ["1907", "Ann"]
    assert (question.hops, question.group("hops"), question.group("type")) == (2, "2", "2hop")


CRAG = {
    "interaction_id": "c1",
    "query_time": "03/13/2024, 09:30:59 PT",
    "domain": "sports",
    "question_type": "false_premise",
    "static_or_dynamic": "fast-changing",
    "query": "how often has ida moll won the regatta?",
    "answer": "ida moll never won it",
    "alternative_answers": "['never', 'not once']",
    "search_results": [{"page_name": "Regatta", "page_url": "https://a.example/", "page_result": "<p>A race.</p>"}],
}


def test_a_line_of_the_crag_benchmark_has_its_pages_its_time_and_our_names(tmp_path: Path) -> None:
    path = tmp_path / "crag.jsonl.bz2"
    path.write_bytes(bz2.compress(json.dumps(CRAG).encode()))
    [file] = read_questions([path])
    [question] = file.questions
    assert (question.key, question.question, question.asked_at) == ("crag/c1", CRAG["query"], CRAG["query_time"])
    assert question.answers == ("ida moll never won it", "never", "not once", "invalid question")
    assert [(page.name, page.url, page.html) for page in question.pages] == [
        ("Regatta", "https://a.example/", "<p>A race.</p>")
    ]
    assert {name: question.row[name] for name in ("id", "question", "type", "domain", "static_or_dynamic")} == {
        **{"id": "c1", "question": CRAG["query"], "type": "false_premise"},
        **{"domain": "sports", "static_or_dynamic": "fast-changing"},
    }
    assert "search_results" not in question.row


def test_gzipped_files_of_one_name_are_named_with_their_folders(tmp_path: Path) -> None:
    for name in ("east", "west"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "questions.jsonl.gz").write_bytes(gzip.compress(b'{"question": "Why?"}'))
    paths = [tmp_path / name / "questions.jsonl.gz" for name in ("east", "west")]
    assert [file.questions[0].key for file in read_questions(paths)] == ["east/1", "west/1"]
    with pytest.raises(UsageError, match="must differ"):
        read_questions([paths[0], paths[0]])


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{oops", "line 2: Invalid JSON"),
        ('["a"]', "line 2: Input should be an object"),
        ('{"id": "x"}', "line 2: question: Field required"),
        ('{"question": " "}', "line 2: question: String should have at least 1 character"),
        ('{"question": "Why?", "gold_ids": "a"}', "line 2: gold_ids: .*array"),
        ('{"query": "Why?", "alternative_answers": "[oops"}', "line 2: alternative_answers: .*no list"),
        ('{"query": "Why?", "search_results": [{}]}', "line 2: search_results.0.page_result: Field required"),
        ('{"question": "Why?", "id": "q1"}', "line 2: the id 'q1' is already used on line 1"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_questions([write_questions(tmp_path, {"id": "q1", "question": "Why?"}, line)])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("nowhere.jsonl", None, "cannot be read"),
        ("broken.jsonl.gz", b"not compressed", "cannot be read"),
        ("broken.jsonl.bz2", b"not compressed", "cannot be read"),
        ("empty.jsonl", b"", "holds no question"),
    ],
)
def test_unusable_file_is_refused(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=message):
        read_questions([tmp_path / name])


def test_a_sample_is_drawn_per_file_by_the_seed(tmp_path: Path) -> None:
    rows = [{"question": f"Question {number}?"} for number in range(20)]
    files = read_questions([write_rows(tmp_path / f"{name}.jsonl", *rows) for name in ("a", "b")])
    everything = [question for file in files for question in file.questions]
    drawn = sample(everything, 5, seed=1)
    assert [question.set for question in drawn] == ["a"] * 5 + ["b"] * 5
    assert drawn == sample(everything, 5, seed=1)
    assert drawn != sample(everything, 5, seed=2)
    assert drawn == [question for question in everything if question in drawn]
    assert sample(everything, None, seed=1) == everything
    assert len(sample(everything, 100, seed=1)) == 40
