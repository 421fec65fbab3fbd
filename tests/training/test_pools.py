from pathlib import Path

from json_lines import write_rows

from training.pools import pools, read_training

FERRY = {"title": "Ferry", "text": "The ferry was built for Oda Brask.", "is_supporting": True}
BRASK = {"title": "Oda Brask", "text": "She was born in Kestrow.", "is_supporting": True}
RAIN = {"title": "Rain", "text": "Rain falls.", "is_supporting": False}


def line(id_: str, *paragraphs: object) -> dict[str, object]:
    return {"id": id_, "question": "Where was the one born for whom the ferry was built?", "paragraphs": paragraphs}


def test_paragraphs_of_all_files_are_one_collection_without_repeats(tmp_path: Path) -> None:
    first = write_rows(tmp_path / "a" / "train.jsonl", line("1", FERRY, RAIN))
    second = write_rows(tmp_path / "b" / "train.jsonl", line("2", RAIN, BRASK, FERRY))
    passages, questions = read_training([first, second])
    assert [passage.title for passage in passages] == ["Ferry", "Rain", "Oda Brask"]
    assert [question.set for question in questions] == ["a/train", "b/train"]
    assert questions[1].gold == {passages[0].id, passages[2].id}


def test_a_question_without_gold_teaches_nothing(tmp_path: Path) -> None:
    _, questions = read_training([write_rows(tmp_path / "train.jsonl", line("1", RAIN), line("2", FERRY))])
    assert [question.id for question in questions] == ["2"]


def test_pools_are_what_search_finds_with_the_gold_marked(tmp_path: Path) -> None:
    fillers = [{"title": f"Report {number}", "text": f"Weather of {number}."} for number in range(10)]
    passages, questions = read_training([write_rows(tmp_path / "train.jsonl", line("1", FERRY, BRASK, *fillers))])
    (pool,), names = pools(passages, questions)
    assert pool.rows.shape == (len(pool.ids), len(names))
    assert {id_ for id_, gold in zip(pool.ids, pool.gold, strict=True) if gold} == questions[0].gold
