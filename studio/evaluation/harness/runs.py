"""Durable, concurrent runs of every system on every question, and the judge model's opinion of each answer."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, TypeVar

from sleuth import prompts
from sleuth.agents.formatting import escape_chat_markers
from sleuth.agents.model import Message, Model, Request
from sleuth.agents.model_calls.output_parsing import Unparsable, parse
from sleuth.agents.roles.judging import CORRECT, JUDGE, JudgeInput
from sleuth.graphs.core.answer import Cost
from sleuth.graphs.evidence.check import support_of_run
from sleuth.graphs.persistence import LONGEST_NAME, Store
from sleuth.graphs.registry import method
from sleuth.graphs.runs import RunService
from sleuth.studio.client import last_answer
from sleuth.studio.evaluation.data import GoldQuestion, System
from sleuth.studio.evaluation.gold import KnownGold
from sleuth.studio.evaluation.models import BudgetSpent, ServicesFor
from sleuth.studio.evaluation.results import Result, Results, scores
from sleuth.studio.evaluation.scoring import first_words, quoted
from sleuth.tools.errors import ModelUnavailable, SleuthError

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One question with one system; `evaluation` distinguishes its thread from those of others in the same store."""

    system: System
    question: GoldQuestion
    evaluation: str = ""

    @property
    def thread(self) -> str:
        """Always the same within an evaluation."""
        name = f"{self.evaluation}{self.system.name}/{self.question.key}"
        plain = re.sub(r"[^\w.-]+", "-", name)
        if plain.count("-") == name.count("-") + name.count("/") + name.count(" ") and len(plain) <= LONGEST_NAME:
            return plain
        return f"{plain[:80]}-{sha256(name.encode()).hexdigest()[:12]}"


def make_jobs(systems: Sequence[System], questions: Sequence[GoldQuestion], evaluation: str = "") -> list[Job]:
    """Return the jobs question by question, so that an early end still compares the systems on the same questions."""
    return [
        Job(system=system, question=question, evaluation=evaluation) for question in questions for system in systems
    ]


async def _process(items: Iterable[Item], work: Callable[[Item], Awaitable[None]], at_once: int) -> str:
    """Process the items with `at_once` workers; return the reason for an early end, or an empty text."""
    queue = iter(items)

    async def worker() -> str:
        for item in queue:
            try:
                await work(item)
            except BudgetSpent as spent:
                return str(spent)
        return ""

    try:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker()) for _ in range(at_once)]
    except* ModelUnavailable as down:
        raise down.exceptions[0] from None
    return next((task.result() for task in workers if task.result()), "")


@dataclass(frozen=True, kw_only=True)
class Harness:
    """Runs jobs in parallel and stores their results; `run_job` runs one."""

    run_job: Callable[[Job], Awaitable[Result]]
    results: Results
    at_once: int

    async def run(self, wanted: Iterable[Job], on_done: Callable[[], None]) -> str:
        """Run the jobs that have no result yet; return the reason for an early end, or an empty text.

        Raises:
            ModelUnavailable: no model server answers; finished runs are kept.
        """

        async def work(job: Job) -> None:
            await self.results.add(await self.run_job(job))
            on_done()

        return await _process([job for job in wanted if job.thread not in self.results.by_thread], work, self.at_once)


@dataclass(frozen=True, kw_only=True)
class JobRunner:
    """Runs jobs in a store; an interrupted simulated run starts from scratch."""

    store: Store
    services_for: ServicesFor
    known: KnownGold
    simulated: bool = False

    async def run(self, job: Job) -> Result:
        """Run a job; return a result from the run's end and from the prompts that it has sent.

        Raises:
            BudgetSpent: the evaluation's budget has no room for the next call.
            ModelUnavailable: no model server answers.
        """
        services = await self.services_for(job.question)
        runs = RunService(self.store, services)
        try:
            await self._prepare(runs, job)
            answer = await last_answer(runs.run(job.thread))
        except (BudgetSpent, ModelUnavailable):
            raise
        except SleuthError as error:
            return await self._scored(job, {"status": "failed", "problem": str(error)})
        thread = await runs.store.threads.get(job.thread)
        state = await runs.graph(thread).aget_state(runs.config(thread))
        hashes = list(dict.fromkeys(call["prompt"] for call in state.values["calls"].values()))
        sent = await runs.store.archive.load(hashes)
        cited = {each["passage"]: each["document"] for each in answer.citations if each["document"]}
        checker, archive = services.checker, runs.store.archive
        checked = await support_of_run(checker, state.values, archive) if checker else None
        found = {
            "status": answer.status,
            "text": answer.text,
            "cited": [[passage, document] for passage, document in cited.items()],
            "quoted": quoted(answer.text, [each["quote"] for each in answer.citations]),
            "checked": checked,
            "shown": await asyncio.to_thread(self.known.shown, job.question, sent),
            "cost": answer.cost,
            "seconds": None if self.simulated else answer.seconds,
            "warnings": len(answer.warnings),
        }
        return await self._scored(job, found)

    async def _prepare(self, runs: RunService, job: Job) -> None:
        """Create the run; delete and restart an interrupted simulated one, whose model's cache is lost."""
        if await runs.store.threads.exists(job.thread):
            if not self.simulated or (await runs.store.threads.get(job.thread)).state == "done":
                return
            await runs.store.saver.adelete_thread(job.thread)
            await runs.store.threads.remove(job.thread)
        system, question = job.system, job.question
        values = system.values
        if question.asked_at and "asked_at" in method(system.method).settings.model_fields:
            values = {"asked_at": question.asked_at, **values}
        await runs.start(
            question.question,
            system.method,
            values=values,
            profile=system.profile,
            thread=job.thread,
            pages=await self.known.pages(question),
        )

    async def _scored(self, job: Job, found: dict[str, Any]) -> Result:
        """Return a result with what was found and its scores."""
        empty = Result(
            thread=job.thread,
            system=job.system.name,
            question=job.question.key,
            status="",
            text="",
            cited=[],
            quoted=None,
            checked=None,
            shown=[],
            cost=Cost(calls=0, prompt_tokens=0, cached_tokens=0, completion_tokens=0, model_seconds=0.0, nodes={}),
            seconds=None,
            warnings=0,
            problem="",
            simulated=self.simulated,
            judged=None,
            scores={},
        )
        result = Result(**{**empty, **found})  # type: ignore[typeddict-item]  # fields of a result
        result["scores"] = await asyncio.to_thread(scores, result, job.question)
        return result


async def judge_all(
    model: Model, results: Results, chosen: Iterable[Result], questions: Mapping[str, GoldQuestion], *, at_once: int
) -> str:
    """Judge the answers without an opinion; return the reason for an early end, or an empty text.

    Refusals are wrong without asking the judge, unless the question has no answer. A reply that is neither of the two
    words leaves an answer unjudged. The judge reads the first 50 words of an answer, as CRAG's score does. Each opinion
    is stored, so that an answer is judged once.
    """
    await prompts.read(JUDGE.prompt)

    async def work(result: Result) -> None:
        question = questions[result["question"]]
        judged = await _opinion(model, result, question) if question.answers else None
        if judged is not None:
            fresh = Result(**{**result, "judged": judged})
            fresh["scores"] = scores(fresh, question)
            await results.add(fresh)

    unjudged = [each for each in chosen if each["judged"] is None and each["status"] != "failed"]
    return await _process(unjudged, work, at_once)


async def _opinion(model: Model, result: Result, question: GoldQuestion) -> bool | None:
    if result["status"] != "answered" or "" in question.answers:
        return bool(result["scores"]["em"])
    given = JudgeInput(question=question.question, answers=question.answers, said=first_words(result["text"]))
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
