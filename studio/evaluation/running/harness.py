"""Runs of every system on every question: durable, concurrent, one thread each."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from sleuth.graphs.core import Answer, Cost
from sleuth.graphs.persistence import LONGEST_NAME, Store
from sleuth.graphs.registry import method
from sleuth.graphs.runs import RunService, Services
from sleuth.studio.client import last_answer
from sleuth.studio.evaluation.data import GoldQuestion, GoldTexts, QuestionPages, System
from sleuth.studio.evaluation.scoring import BudgetSpent, Result, Results, metrics, scores
from sleuth.tools.errors import ModelUnavailable, SleuthError

ServicesFor = Callable[[GoldQuestion], Awaitable[Services]]
"""Factory of the services of one question's run."""

OnDone = Callable[[], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One question with one system."""

    system: System
    question: GoldQuestion

    @property
    def thread(self) -> str:
        """Always the same within an evaluation, whose runs are in a store of their own."""
        name = f"{self.system.name}/{self.question.key}"
        plain = re.sub(r"[^\w.-]+", "-", name)
        if plain.count("-") == name.count("-") + name.count("/") + name.count(" ") and len(plain) <= LONGEST_NAME:
            return plain
        return f"{plain[:80]}-{sha256(name.encode()).hexdigest()[:12]}"


def make_jobs(systems: Sequence[System], questions: Sequence[GoldQuestion]) -> list[Job]:
    """Return the jobs question by question, so that an early end still compares the systems on the same questions."""
    return [Job(system=system, question=question) for question in questions for system in systems]


@dataclass(frozen=True, kw_only=True)
class Harness:
    """A runner of jobs; an interrupted simulated run starts from scratch."""

    store: Store
    services_for: ServicesFor
    results: Results
    texts: GoldTexts
    pages: QuestionPages
    at_once: int
    simulated: bool = False

    async def run(self, wanted: Iterable[Job], on_done: OnDone) -> str:
        """Run the jobs that have no result yet; return the reason for an early end, or an empty text.

        Raises:
            ModelUnavailable: no model server answers; finished runs are kept.
        """
        queue = iter([job for job in wanted if job.thread not in self.results.by_thread])
        try:
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(self._work(queue, on_done)) for _ in range(self.at_once)]
        except* ModelUnavailable as down:
            raise down.exceptions[0] from None
        return next((worker.result() for worker in workers if worker.result()), "")

    async def _work(self, queue: Iterable[Job], on_done: OnDone) -> str:
        """Process one job after the other; return the reason if the allowance is spent."""
        for job in queue:
            try:
                result = await self._result(job)
            except BudgetSpent as spent:
                return str(spent)
            await self.results.add(result)
            on_done()
        return ""

    async def _result(self, job: Job) -> Result:
        runs = RunService(self.store, await self.services_for(job.question))
        try:
            await self._prepare(runs, job)
            answer = await last_answer(runs.run(job.thread))
        except (BudgetSpent, ModelUnavailable):
            raise
        except SleuthError as error:
            return _failed(job, str(error), simulated=self.simulated)
        return await self._read(runs, job, answer)

    async def _prepare(self, runs: RunService, job: Job) -> None:
        """Create the run; delete and restart an interrupted simulated one, whose model's cache is lost."""
        if await runs.store.threads.exists(job.thread):
            if not self.simulated or (await runs.store.threads.get(job.thread)).state == "done":
                return
            await runs.store.saver.adelete_thread(job.thread)
            await runs.store.threads.remove(job.thread)
        system, question = job.system, job.question
        await runs.start(
            question.question,
            system.method,
            values=_dated(job),
            profile=system.profile,
            thread=job.thread,
            pages=await self.pages.of(question),
        )

    async def _read(self, runs: RunService, job: Job, answer: Answer) -> Result:
        """Return a result from the run's end, and from the prompts that it has sent."""
        thread = await runs.store.threads.get(job.thread)
        state = await runs.graph(thread).aget_state(runs.config(thread))
        hashes = list(dict.fromkeys(call["prompt"] for call in state.values["calls"].values()))
        prompts = await runs.store.archive.load(hashes)
        cited = {each["passage"]: each["document"] for each in answer.citations if each["document"]}
        result = Result(
            thread=job.thread,
            system=job.system.name,
            question=job.question.key,
            status=answer.status,
            text=answer.text,
            cited=[[passage, document] for passage, document in cited.items()],
            quoted=metrics.quoted(answer.text, [each["quote"] for each in answer.citations]),
            shown=await asyncio.to_thread(self.texts.shown, job.question, prompts),
            cost=answer.cost,
            seconds=None if self.simulated else answer.seconds,
            warnings=len(answer.warnings),
            problem="",
            simulated=self.simulated,
            judged=None,
            scores={},
        )
        result["scores"] = await asyncio.to_thread(scores, result, job.question)
        return result


def _dated(job: Job) -> dict[str, Any]:
    """Return the system's settings, with the question's time for a method with `asked_at`, unless it is set."""
    system, at = job.system, job.question.asked_at
    known = at and "asked_at" in method(system.method).settings.model_fields
    return {"asked_at": at, **system.values} if known else system.values


def _failed(job: Job, problem: str, *, simulated: bool) -> Result:
    nothing = Cost(calls=0, prompt_tokens=0, cached_tokens=0, completion_tokens=0, model_seconds=0.0, nodes={})
    result = Result(
        thread=job.thread,
        system=job.system.name,
        question=job.question.key,
        status="failed",
        text="",
        cited=[],
        shown=[],
        cost=nothing,
        warnings=0,
        problem=problem,
        simulated=simulated,
        judged=None,
        scores={},
    )
    result["scores"] = scores(result, job.question)
    return result
