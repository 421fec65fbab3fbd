"""Questions from feedback: good answers are gold, bad ones with a comment have none."""

import json
from pathlib import Path

import pytest
from scenes import Replying, Shelf, example, finish

from sleuth.graphs.core.context import Services
from sleuth.graphs.persistence.store import open_store
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.evaluation.data import read_questions
from sleuth.studio.evaluation.feedback import export_feedback
from sleuth.tools.errors import UsageError
from sleuth.tools.settings import Settings

CHAIN = example("q08")


async def rate(runs: RunService, id: str, **feedback: str) -> None:
    await finish(runs, await runs.start(RunRequest(question=CHAIN.question, method="par-rag", thread=id)))
    await runs.store.threads.set_feedback(id, feedback)


async def test_rated_runs_become_questions_once(settings: Settings, tmp_path: Path) -> None:
    out = tmp_path / "new" / "feedback.jsonl"
    async with open_store(settings) as store:
        runs = RunService(store, Services(model=Replying(CHAIN.reply_to), retriever=Shelf(CHAIN.passages)))
        await rate(runs, "good", rating="up", comment="")
        await rate(runs, "silent", rating="down", comment=" ")
        await rate(runs, "bad", rating="down", comment="It was\u20281902.")
        answer = await runs.answer("good")
        assert answer.text
        assert len((await export_feedback(runs, out))[0]) == 2
        good, bad = map(json.loads, out.read_bytes().splitlines())
        assert (good["id"], good["type"], good["answer"]) == ("good", "good_answer", answer.text)
        assert good["gold_ids"] == [citation["passage"] for citation in answer.citations]
        assert (bad["id"], bad["type"], bad["comment"]) == ("bad", "bad_answer", "It was\u20281902.")
        assert bad["rejected_answer"] == answer.text
        assert not {"answer", "gold_ids"} & bad.keys()
        [file] = read_questions([out])
        assert [question.answers for question in file.questions] == [(answer.text,), ()]

        await rate(runs, "later", rating="up", comment="Exactly.")
        added, kept = await export_feedback(runs, out)
        assert ([row["id"] for row in added], kept) == (["later"], 2)
        assert len(out.read_bytes().splitlines()) == 3


async def test_other_files_are_refused(settings: Settings, tmp_path: Path) -> None:
    (other := tmp_path / "notes.jsonl").write_text("[1]\n")
    async with open_store(settings) as store:
        with pytest.raises(UsageError, match=r"not a file of questions with ids.*--out"):
            await export_feedback(RunService(store), other)
    assert other.read_text() == "[1]\n"
