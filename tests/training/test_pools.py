from pathlib import Path

from json_lines import write_rows

from training.questions import read
from training.ranker import pools

FERRY = {"title": "Ferry", "text": "The ferry was built for Oda Brask.", "is_supporting": True}
BRASK = {"title": "Oda Brask", "text": "She was born in Kestrow.", "is_supporting": True}
RAIN = {"title": "Rain", "text": "Rain falls.", "is_supporting": False}


def line(id_: str, *paragraphs: object) -> dict[str, object]:
    return {
        "id": id_,
        "question": "Where was the one born for whom the ferry was built?",
        "answer": "Kestrow",
        "paragraphs": paragraphs,
    }


def test_paragraphs_of_all_files_are_one_collection_without_repeats(tmp_path: Path) -> None:
    first = write_rows(tmp_path / "a" / "train.jsonl", line("1", FERRY, RAIN))
    second = write_rows(tmp_path / "b" / "train.jsonl", line("2", RAIN, BRASK, FERRY))
    known = read([first, second])
    assert [title for title, _ in known.passages.values()] == ["Ferry", "Rain", "Oda Brask"]
    assert [row["set"] for row in known.questions] == ["a/train", "b/train"]
    assert known.questions[1]["gold_ids"] == ["p2", "p0"]


def test_pools_are_what_search_finds_with_the_gold_marked(tmp_path: Path) -> None:
    fillers = [{"title": f"Report {number}", "text": f"Weather of {number}."} for number in range(10)]
    known = read([write_rows(tmp_path / "train.jsonl", line("1", FERRY, BRASK, *fillers), line("2", RAIN))])
    (pool,), names = pools(known)
    assert pool.rows.shape == (len(pool.ids), len(names))
    assert {id_ for id_, gold in zip(pool.ids, pool.gold, strict=True) if gold} == {"p0", "p1"}
    assert pool.needed == 2
