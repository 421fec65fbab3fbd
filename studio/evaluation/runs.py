"""Durable, concurrent runs of every system on every question, and the judge model's opinion of each answer."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TypeVar, cast

from sleuth import prompts
from sleuth.agents.model import Model, NamedModel, Request
from sleuth.agents.model_calls.caller import render_messages
from sleuth.agents.model_calls.output_parsing import Unparsable, parse
from sleuth.agents.role import NAMES
from sleuth.agents.roles.judging import CORRECT, JUDGE, JudgeInput
from sleuth.graphs.core.context import Services
from sleuth.graphs.core.triples import MemoryTriples
from sleuth.graphs.evidence.check import support_of_run
from sleuth.graphs.persistence.store import Store, open_store
from sleuth.graphs.persistence.tables import LONGEST_NAME
from sleuth.graphs.registry import method
from sleuth.graphs.runs.request import RunRequest
from sleuth.graphs.runs.service import RunService
from sleuth.studio.client.services import open_client, open_client_or_missing, open_services
from sleuth.studio.client.sleuth import last_answer
from sleuth.studio.evaluation.data import GoldQuestion, System
from sleuth.studio.evaluation.gold import KnownGold, Players, shown_gold
from sleuth.studio.evaluation.models import BudgetSpent, EvaluationBudget, EvaluationModel
from sleuth.studio.evaluation.results import Result, Results
from sleuth.studio.evaluation.scoring import first_words, quoted
from sleuth.tools.collection import Collection
from sleuth.tools.errors import ModelUnavailable, SleuthError
from sleuth.tools.settings import Settings

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One question with one system."""

    system: System
    question: GoldQuestion

    @property
    def thread(self) -> str:
        """The id of the run, which a rerun of the evaluation finds again."""
        name = f"{self.system.name}/{self.question.key}"
        plain = re.sub(r"[^\w.-]", "-", name)
        if plain == re.sub(r"[/ ]", "-", name) and len(plain) <= LONGEST_NAME:
            return plain
        return f"{plain[:80]}-{sha256(name.encode()).hexdigest()[:12]}"


async def process(items: Iterable[Item], work: Callable[[Item], Awaitable[None]], at_once: int) -> str:
    """Process the items with `at_once` workers; return the reason for an early end, or an empty text.

    Raises:
        ModelUnavailable: no model server answers.
    """
    queue, reasons = iter(items), list[str]()

    async def worker() -> None:
        for item in queue:
            try:
                await work(item)
            except BudgetSpent as spent:
                reasons.append(str(spent))
                return

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(worker())
    except* ModelUnavailable as down:
        raise down.exceptions[0] from None
    return next(iter(reasons), "")


@dataclass(frozen=True, kw_only=True)
class JobRunner:
    """Runs jobs in a store. `model` is the client of the model server, or the model of the players."""

    store: Store
    services: Services
    model: NamedModel
    gold: KnownGold
    budget: EvaluationBudget
    players: Players | None = None

    @property
    def limited(self) -> EvaluationModel:
        """The model, which keeps the budget."""
        return EvaluationModel(model=self.model, allowance=self.budget)

    @property
    def is_played(self) -> bool:
        """Return whether a model of the players replaces the model server."""
        return bool(self.players and self.players.model)

    def names(self) -> dict[str, str]:
        """Return the names of the models by role; "default" is that of all roles without one of their own."""
        default = self.model.name_of("default")
        return {"default": default} | {role: name for role in NAMES if (name := self.model.name_of(role)) != default}

    async def run(self, job: Job) -> Result:
        """Run a job; return a result from the run's end and from the prompts that it has sent.

        Raises:
            BudgetSpent: the evaluation's budget has no room for the next call.
            ModelUnavailable: no model server answers.
        """
        result = partial(Result, thread=job.thread, system=job.system.name, question=job.question.key)
        # Every run has its own triples: with a shared cache the cost of a question would depend on earlier ones.
        services = replace(self.services, model=self.limited, triples=MemoryTriples())
        if self.players:
            services = await self.players.services(job.question, services, self.gold)
        runs, archive = RunService(self.store, services), self.store.archive
        try:
            await self._prepare(runs, job)
            answer = await last_answer(runs.run(job.thread))
        except (BudgetSpent, ModelUnavailable):
            raise
        except SleuthError as error:
            return result(status="failed", problem=str(error)).scored(job.question)
        state = (await runs.state(await self.store.threads.get(job.thread))).values
        sent = await archive.load(list(dict.fromkeys(call["prompt"] for call in state["calls"].values())))
        cited = {citation["passage"]: citation["document"] for citation in answer.citations if citation["document"]}
        ended = result(
            status=answer.status,
            text=answer.text,
            cited=[[passage, document] for passage, document in cited.items()],
            quoted=quoted(answer.text, [citation["quote"] for citation in answer.citations]),
            checked=await support_of_run(services.checker, state, archive) if services.checker else None,
            shown=await asyncio.to_thread(shown_gold, await self.gold.texts(job.question), sent),
            cost=answer.cost,
            seconds=None if self.is_played else answer.seconds,
            warnings=len(answer.warnings),
        )
        return await asyncio.to_thread(ended.scored, job.question)

    async def _prepare(self, runs: RunService, job: Job) -> None:
        """Create the run; restart an interrupted one if players replace the model, which remembers its requests."""
        threads, system, question = self.store.threads, job.system, job.question
        if await threads.exists(job.thread):
            if not self.is_played or (await threads.get(job.thread)).state == "done":
                return
            await threads.remove(job.thread)
        values = system.values
        if question.asked_at and "asked_at" in method(system.method).settings.model_fields:
            values = {"asked_at": question.asked_at, **values}
        await runs.start(
            RunRequest(
                question=question.question,
                method=system.method,
                values=values,
                profile=system.profile,
                thread=job.thread,
                pages=await self.gold.pages(question),
            )
        )


@asynccontextmanager
async def open_runner(
    settings: Settings,
    collection: Collection,
    budget: EvaluationBudget,
    *,
    players: Players | None,
    needs_model: bool,
) -> AsyncIterator[JobRunner]:
    """Open the store of the settings, and their model server unless the players have a model or the runs need none.

    The only knowledge graph is the one in the settings: with that of the collection's triples, which grow during runs,
    the cost of a question would depend on earlier ones.

    Raises:
        ModelError: the model server cannot be used.
    """
    async with AsyncExitStack() as stack:
        model = players.model if players else None
        if model is None:
            model = await stack.enter_async_context((open_client if needs_model else open_client_or_missing)(settings))
        services = await stack.enter_async_context(open_services(settings, model, collection, triples=MemoryTriples()))
        model = cast("NamedModel", services.model)  # in some roles the evidence checker
        store, gold = await stack.enter_async_context(open_store(settings)), KnownGold(collection)
        yield JobRunner(store=store, services=services, model=model, gold=gold, budget=budget, players=players)


async def judge_all(
    model: Model, results: Results, chosen: Iterable[Result], questions: Mapping[str, GoldQuestion], *, at_once: int
) -> str:
    """Judge the answers without an opinion; return the reason for an early end, or an empty text.

    Refusals are wrong without asking the judge, unless the question has no answer. A reply that is neither of the two
    words leaves an answer unjudged. The judge reads the first 50 words of an answer, as CRAG's score does. Each opinion
    is stored, so that an answer is judged once.
    """
    await prompts.read()

    async def work(result: Result) -> None:
        question = questions[result.question]
        judged = await _opinion(model, result, question) if question.answers else None
        if judged is not None:
            await results.add(replace(result, judged=judged).scored(question))

    unjudged = [result for result in chosen if result.judged is None and result.status != "failed"]
    return await process(unjudged, work, at_once)


async def _opinion(model: Model, result: Result, question: GoldQuestion) -> bool | None:
    if result.status != "answered" or "" in question.answers:
        return bool(result.scores["em"])
    inputs = JudgeInput(question=question.question, answers=question.answers, said=first_words(result.text))
    request = Request(
        call_id=f"judge-{result.thread}",
        role=JUDGE.name,
        prompt=JUDGE.prompt,
        messages=render_messages(JUDGE, inputs),
        input=asdict(inputs),
        sampling=JUDGE.sampling,
        choices=JUDGE.choices,
    )
    try:
        return parse((await model.call(request))["text"], str, choices=JUDGE.choices) == CORRECT
    except Unparsable:
        return None
