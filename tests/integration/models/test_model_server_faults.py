"""For any fault of the model server, a run ends with an answer or with an error that explains it, and can be resumed.

Each seed is one run of one method in weather of its own: up to three sessions while things go wrong, then one in calm.
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
from fault_injection import Weather
from fault_scenario_runs import EVERY, Instant
from fault_scenarios import IRCOT
from faulty_environment import HANGS, TIMEOUT, House, Run, housed
from faulty_server import Face, facing
from windows import Sweep, count

from sleuth.agents.llm.client import LLMClient
from sleuth.tools.errors import ModelError
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

SEEDS = 1_000
SAMPLE = 26
AT_ONCE = 16
RATES = (0.02, 0.1, 0.25, 0.5)


async def try_seed(house: House, seed: int) -> dict[str, Any]:
    """One run in its weather, and what was seen."""
    trial = EVERY[seed % len(EVERY)]
    weather = Weather(seed, Random(seed).choice(RATES))
    run = Run(house, trial, weather, f"s{seed}-{trial.method}")
    try:
        sessions = await run.to_its_end()
    except (AssertionError, TimeoutError) as error:
        error.add_note(f"seed {seed}, {trial.method}, met {weather.met}")
        raise
    return {
        "method": trial.method,
        "ended": sessions[-1].ended,
        "errors": Counter(session.ended for session in sessions if session.answer is None),
        "met": {str(fault): times for fault, times in weather.met.items()},
        "sent": len(weather.calls),
        "calls": len(set(weather.calls)),
        "kept": run.kept,
        "compared": run.compared,
        "longest": round(max(weather.silences, default=0.0), 2),
    }


async def test_a_sample_of_faults(tmp_path: Path) -> None:
    async with housed(tmp_path, EVERY) as house, asyncio.TaskGroup() as group:
        tried = [group.create_task(try_seed(house, seed)) for seed in range(SAMPLE)]
    seen = [task.result() for task in tried]
    assert len({row["method"] for row in seen}) == len(EVERY)
    assert sum(bool(row["errors"]) for row in seen) >= SAMPLE // 4  # resumed, and not only got over
    assert sum(row["kept"] for row in seen) > SAMPLE
    assert sum(row["compared"] for row in seen) >= SAMPLE // 4


async def test_what_a_server_can_do_is_not_mistaken_in_bad_weather(tmp_path: Path) -> None:
    async def found(face: Face, weather: Weather) -> Any:
        home = tmp_path / f"home-{weather.seed}"
        settings = Settings(home=home, model_url=face.url(f"s{weather.seed}", weather), timeout=TIMEOUT)
        async with LLMClient.open(settings):
            (capabilities,) = json.loads((home / "capabilities.json").read_text()).values()
            return capabilities

    async with facing(Instant(IRCOT.script)) as face:
        calm = await found(face, Weather(0, 0.0))
        weathers = [Weather(seed, 0.3) for seed in range(1, 21)]
        tried = await asyncio.gather(*(found(face, weather) for weather in weathers), return_exceptions=True)
    assert all(isinstance(each, ModelError) or each == calm for each in tried), tried
    assert sum(each == calm and bool(weather.met) for each, weather in zip(tried, weathers, strict=True)) > 3


async def test_the_server_is_started_again_in_the_middle_of_twenty_runs(tmp_path: Path) -> None:
    async with housed(tmp_path, [IRCOT]) as house:
        face, runs = house.faces[IRCOT.method], [Run(house, IRCOT, Weather(n, 0.0), f"r{n}") for n in range(20)]
        async with asyncio.TaskGroup() as group:
            first = [group.create_task(run.checked(HANGS)) for run in runs]
            while sum(len(run.weather.calls) for run in runs) < 60:  # noqa: ASYNC110 - some are anywhere by then
                await asyncio.sleep(0.001)
            await face.stop()
            while not any(task.done() for task in first):  # noqa: ASYNC110 - its tries were in vain
                await asyncio.sleep(0.01)
            await face.start()
        broken = [run for run, task in zip(runs, first, strict=True) if task.result().answer is None]
        assert broken
        assert {task.result().ended for task in first} <= {"ModelUnavailable", "answered"}
        async with asyncio.TaskGroup() as group:
            again = [group.create_task(run.checked(HANGS)) for run in runs]
    for task in again:
        answer = task.result().answer
        assert answer and kills.essence(answer.to_json()) == house.expected[IRCOT.method]
    assert sum(run.kept for run in broken) > 0


@pytest.mark.faults
@pytest.mark.timeout(7200)
async def test_a_thousand_runs_in_bad_weather(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sweep = Sweep("weather", SEEDS)
    left = sweep.left()

    async def work(house: House) -> None:
        for seed in left:
            sweep.passed(seed, **await try_seed(house, seed))

    if sweep.due():
        async with housed(tmp_path, EVERY) as house, asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work(house))
    rows = sweep.end()
    told = {name: count(rows, name) for name in ("method", "ended", "errors", "met")}
    told |= {name: sum(row[name] for row in rows) for name in ("sent", "calls", "kept", "compared")}
    told["longest"] = max(row["longest"] for row in rows)
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(told, indent=1)}\n")
