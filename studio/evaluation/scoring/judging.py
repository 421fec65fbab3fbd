"""The judge model's opinion of every answer, each asked for once: what is judged is written down like any result."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import asdict

from sleuth import prompts
from sleuth.agents.formatting import escape_chat_markers
from sleuth.agents.model import Message, Model, Request
from sleuth.agents.model_calls import Unparsable, parse
from sleuth.agents.roles.judging import CORRECT, JUDGE, JudgeInput
from sleuth.studio.evaluation.data import GoldQuestion
from sleuth.studio.evaluation.scoring.budget import BudgetSpent
from sleuth.studio.evaluation.scoring.results import Result, Results, scores
from sleuth.tools.errors import ModelUnavailable


async def judge_all(
    model: Model, results: Results, chosen: Iterable[Result], questions: Mapping[str, GoldQuestion], *, at_once: int
) -> str:
    """Judge the answers without an opinion; return the reason for an early end, or an empty text.

    Refusals are wrong without asking the judge, unless the question has no answer. A reply that is neither of the two
    words leaves an answer unjudged.
    """
    await prompts.read(JUDGE.prompt)
    queue = iter([each for each in chosen if each["judged"] is None and each["status"] != "failed"])

    async def work() -> str:
        for result in queue:
            question = questions[result["question"]]
            if not question.answers:
                continue
            try:
                judged = await _opinion(model, result, question)
            except BudgetSpent as spent:
                return str(spent)
            if judged is not None:
                fresh = Result(**{**result, "judged": judged})
                fresh["scores"] = scores(fresh, question)
                await results.add(fresh)
        return ""

    try:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(work()) for _ in range(at_once)]
    except* ModelUnavailable as down:
        raise down.exceptions[0] from None
    return next((worker.result() for worker in workers if worker.result()), "")


async def _opinion(model: Model, result: Result, question: GoldQuestion) -> bool | None:
    if result["status"] != "answered" or "" in question.answers:
        return bool(result["scores"]["em"])
    given = JudgeInput(question=question.question, answers=question.answers, said=result["text"])
    reply = await model.call(_request(given, result["thread"]))
    try:
        return parse(reply["text"], str, choices=JUDGE.choices) == CORRECT
    except Unparsable:
        return None


def _request(given: JudgeInput, thread: str) -> Request:
    values = {name: escape_chat_markers(value) for name, value in JUDGE.render(given).items()}
    system, user = prompts.load(JUDGE.prompt).render(**values)
    return Request(
        call_id=f"judge-{thread}",
        role=JUDGE.name,
        prompt=JUDGE.prompt,
        messages=(Message(role="system", content=system), Message(role="user", content=user)),
        input=asdict(given),
        sampling=JUDGE.sampling,
        choices=JUDGE.choices,
    )
