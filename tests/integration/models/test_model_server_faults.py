"""For any fault of the model server, a run ends with an answer or with an error that explains it, and can be resumed.

Each seed is one run of one method with faults of its own: up to three sessions with faults, then one without.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import kill as kills
import pytest
from fault_scenarios import EVERY, IRCOT, Instant
from faulty_environment import HANGS, TIMEOUT, Environment, Run, open_environment
from faulty_server import FaultPlan, FaultyServer, faulty_server
from windows import Sweep, count

from sleuth.agents.llm.client import LLMClient
from sleuth.tools.errors import ModelError
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

SEEDS = 1_000
SAMPLE = 26
AT_ONCE = 16
RATES = (0.02, 0.1, 0.25, 0.5)


async def try_seed(environment: Environment, seed: int) -> dict[str, Any]:
    """Run one seed, and return what happened."""
    trial = EVERY[seed % len(EVERY)]
    plan = FaultPlan(seed, Random(seed).choice(RATES))
    run = Run(environment, trial, plan, f"s{seed}-{trial.method}")
    try:
        sessions = await run.to_its_end()
    except (AssertionError, TimeoutError) as error:
        error.add_note(f"seed {seed}, {trial.method}, met {plan.injected}")
        raise
    return {
        "method": trial.method,
        "ended": sessions[-1].ended,
        "errors": Counter(session.ended for session in sessions if session.answer is None),
        "met": {str(fault): times for fault, times in plan.injected.items()},
        "sent": len(plan.calls),
        "calls": len(set(plan.calls)),
        "kept": run.kept,
        "compared": run.compared,
        "longest": round(max(plan.silences, default=0.0), 2),
    }


@pytest.mark.nightly
async def test_a_sample_of_faults(tmp_path: Path) -> None:
    async with open_environment(tmp_path, EVERY) as environment, asyncio.TaskGroup() as group:
        tried = [group.create_task(try_seed(environment, seed)) for seed in range(SAMPLE)]
    seen = [task.result() for task in tried]
    assert len({row["method"] for row in seen}) == len(EVERY)
    assert sum(bool(row["errors"]) for row in seen) >= SAMPLE // 4  # resumed, and not only got over
    assert sum(row["kept"] for row in seen) > SAMPLE
    assert sum(row["compared"] for row in seen) >= SAMPLE // 4


@pytest.mark.nightly
async def test_capabilities_are_right_in_spite_of_faults(tmp_path: Path) -> None:
    async def found(server: FaultyServer, plan: FaultPlan) -> Any:
        home = tmp_path / f"home-{plan.seed}"
        settings = Settings(home=home, model_url=server.url(f"s{plan.seed}", plan), timeout=TIMEOUT)
        async with LLMClient.open(settings):
            (capabilities,) = json.loads((home / "capabilities.json").read_text()).values()
            return capabilities

    async with faulty_server(Instant(IRCOT.script)) as server:
        calm = await found(server, FaultPlan(0))
        plans = [FaultPlan(seed, 0.3) for seed in range(1, 21)]
        tried = await asyncio.gather(*(found(server, plan) for plan in plans), return_exceptions=True)
    assert all(isinstance(each, ModelError) or each == calm for each in tried), tried
    assert sum(each == calm and bool(plan.injected) for each, plan in zip(tried, plans, strict=True)) > 3


@pytest.mark.nightly
async def test_the_server_is_started_again_in_the_middle_of_twenty_runs(tmp_path: Path) -> None:
    async with open_environment(tmp_path, [IRCOT]) as environment:
        server = environment.servers[IRCOT.method]
        runs = [Run(environment, IRCOT, FaultPlan(n), f"r{n}") for n in range(20)]
        async with asyncio.TaskGroup() as group:
            first = [group.create_task(run.checked(HANGS)) for run in runs]
            while sum(len(run.plan.calls) for run in runs) < 60:  # noqa: ASYNC110 - some are anywhere by then
                await asyncio.sleep(0.001)
            await server.stop()
            while not any(task.done() for task in first):  # noqa: ASYNC110 - its tries were in vain
                await asyncio.sleep(0.01)
            await server.start()
        broken = [run for run, task in zip(runs, first, strict=True) if task.result().answer is None]
        assert broken
        assert {task.result().ended for task in first} <= {"ModelUnavailable", "answered"}
        async with asyncio.TaskGroup() as group:
            again = [group.create_task(run.checked(HANGS)) for run in runs]
    for task in again:
        answer = task.result().answer
        assert answer and kills.essence(answer.to_json()) == environment.expected[IRCOT.method]
    assert sum(run.kept for run in broken) > 0


@pytest.mark.faults
@pytest.mark.timeout(7200)
async def test_thousand_runs_with_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = Sweep("weather", SEEDS)
    left = sweep.left()

    async def work(environment: Environment) -> None:
        for seed in left:
            sweep.passed(seed, **await try_seed(environment, seed))

    if sweep.due():
        async with open_environment(tmp_path, EVERY) as environment, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work(environment))
    rows = sweep.end()
    summary = {name: count(rows, name) for name in ("method", "ended", "errors", "met")}
    summary |= {name: sum(row[name] for row in rows) for name in ("sent", "calls", "kept", "compared")}
    summary["longest"] = max(row["longest"] for row in rows)
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(summary, indent=1)}\n")
