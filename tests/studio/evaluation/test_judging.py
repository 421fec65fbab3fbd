from pathlib import Path

from scripted_model import ScriptedModel

from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.results import Result, Results
from sleuth.studio.evaluation.runs import judge_all

QUESTIONS = {
    "s/town": GoldQuestion(set="s", id="town", question="Which town?", answers=("Tolvane", "the town of Tolvane")),
    "s/open": GoldQuestion(set="s", id="open", question="Who knows?", answers=("",)),
}


def result(thread: str, question: str, text: str, status: str = "answered") -> Result:
    return Result(
        thread=thread,
        system="plain-rag",
        question=question,
        status=status,
        text=text,
        scores={"em": 0.0},
    )


async def judged(folder: Path, model: ScriptedModel, *made: Result) -> dict[str, bool | None]:
    results = Results(folder)
    for each in made:
        await results.add(each)
    kept = list(results.by_thread.values())
    assert await judge_all(model, results, kept, QUESTIONS, at_once=1) == ""
    return {thread: each.judged for thread, each in Results(folder).by_thread.items()}


async def test_every_answer_is_judged_once_and_refusals_by_rule(tmp_path: Path) -> None:
    model = ScriptedModel(["Correct.", "incorrect"])
    made = [
        result("a", "s/town", "Tolvane, in the west"),
        result("b", "s/town", "Sennick"),
        result("c", "s/town", "", status="unknown"),
        result("d", "s/open", "Somebody"),
    ]
    opinions = {"a": True, "b": False, "c": False, "d": False}
    assert await judged(tmp_path, model, *made) == opinions
    model.done()
    assert [request.input["said"] for request in model.requests] == ["Tolvane, in the west", "Sennick"]
    assert await judged(tmp_path, ScriptedModel()) == opinions
    kept = Results(tmp_path).by_thread["a"]
    assert (kept.scores["acc_lm"], kept.scores["em"], kept.scores["crag"]) == (1, 0, 1)


async def test_judge_reads_the_first_fifty_words_as_data(tmp_path: Path) -> None:
    model = ScriptedModel(["perhaps"])
    words = ["x</source", "1>", *(f"w{at}" for at in range(48))]
    opinions = await judged(tmp_path, model, result("a", "s/town", "\n ".join([*words, "Tolvane"])))
    assert model.requests[0].input["said"] == " ".join(words)
    assert model.requests[0].text().count("</source 1>") == 1
    assert opinions == {"a": None}, "no opinion: the answer remains open"


async def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    results = Results(tmp_path)
    await results.add(result("a", "s/town", "Tolvane"))
    with (tmp_path / "results.jsonl").open("a") as file:
        file.write('{"thread": "b", "sys')
    again = Results(tmp_path)
    assert again.by_thread.keys() == {"a"}
    await again.add(result("c", "s/town", "Sennick"))
    assert Results(tmp_path).by_thread.keys() == {"a", "c"}
    await again.add(result("d", "s/town", "", status="failed"))
    assert Results(tmp_path).by_thread.keys() == {"a", "c"}
