"""`kill -9` wherever a run may be: it ends with the same answer, and no call that had completed is sent again."""

import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import kill as kills
import pytest
from fault_scenarios import PAR, REAL_PAR, TRIALS, Trial
from hashing_embedder import HashingEmbedder
from postgres_fixture import BOTH_STORES
from run_child import BEFORE, Job
from scripted_backend import Backend, Mixed, Proxy, Scripted, Sent, prompt_of, proxying

from sleuth.tools.ingestion.ingestion import ingest
from sleuth.tools.settings import Settings

CORPUS = Path(__file__).parents[3] / "examples" / "corpus"
SEED = 20_260
MOMENTS = 50


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the example corpus, shared by all runs of this module: their threads differ."""
    folder = tmp_path_factory.mktemp("kills") / "home"
    await fill(Settings(home=folder, embedder="hashing"))
    return folder


async def fill(settings: Settings) -> None:
    report = await ingest([CORPUS], settings=settings, embedder=HashingEmbedder())
    assert report.failed == 0


class Scene:
    """One question, asked over and over in threads of its own; counts kills of a running child, and late ones."""

    def __init__(self, job: Job, proxy: Proxy, *, widest: int) -> None:
        self.kills, self.late = 0, 0
        self._job = job
        self._proxy = proxy
        self._in_flight = 2 * widest  # a reply that is not committed yet, and the next call of the same ask

    async def measure(self, *, before: str = "") -> Sequence[Sent]:
        """The uninterrupted run: its answer, number of commits, duration, and model calls."""
        warming = replace(self._job, question=before, thread=BEFORE) if before else self._new()
        await kills.run(warming)  # warms caches
        start = len(self._proxy.calls)
        ended = await kills.run(self._new())
        self.seconds = ended.seconds
        self.expected = kills.essence(ended.answer)
        self.commits, self.checkpoints = ended.commits, ended.checkpoints
        return self._proxy.calls[start:]

    def _new(self, die_after: int | None = None) -> Job:
        return replace(self._job, thread=uuid4().hex, die_after=die_after)

    async def die_at(self, commit: int) -> None:
        await self._kill_and_resume(self._new(commit))

    async def kill_at_random(self, dice: random.Random, moments: int) -> None:
        """Kill a child at several moments; a child that ended before its moment does not count."""
        until = self.kills + moments
        while self.kills < until:
            await self.kill_after(dice.uniform(0, self.seconds))
            assert self.late <= moments, "most runs end before they are killed"

    async def kill_after(self, seconds: float) -> None:
        ended = await self._kill_and_resume(self._new(), kill_after=seconds)
        if ended.answer is not None:  # the machine has become faster than it was when the run was measured
            self.seconds = min(self.seconds, ended.seconds)

    async def _kill_and_resume(self, job: Job, *, kill_after: float | None = None) -> kills.Ended:
        """Kill one run, resume it in a new process, and check its answer and repeated requests.

        Return the end of the run that was to be killed: an answer, if the kill came too late.
        """
        start = len(self._proxy.calls)
        killed = await kills.run(job, kill_after=kill_after)
        await self._proxy.settle()
        if killed.answer is not None:
            self.late += 1
            assert kills.essence(killed.answer) == self.expected
            return killed
        before = set(self._proxy.ids(start))
        done = kills.committed(job.settings, before)
        middle = len(self._proxy.calls)
        found = kills.essence((await kills.run(replace(job, die_after=None))).answer)
        assert found == self.expected, f"another answer after a resume: {found} instead of {self.expected}"
        after = self._proxy.ids(middle)
        assert not done & set(after), "a call that had completed was sent again"
        assert len(after) == len(set(after)), f"a call was sent twice by one process: {after}"
        assert len(before & set(after)) <= self._in_flight
        self.kills += 1
        return killed


@asynccontextmanager
async def scene_of(trial: Trial, backend: Backend, settings: Settings) -> AsyncIterator[Scene]:
    """A measured scene; if its trial no longer drove the run everywhere, the kills would have less to hit."""
    async with proxying(backend) as proxy:
        asking = settings.model_copy(update={"model_url": proxy.url})
        job = Job(settings=asking, method=trial.method, question=trial.question, thread="", values=trial.values)
        scene = Scene(job, proxy, widest=trial.widest)
        asked = [json.loads(sent.body) for sent in await scene.measure(before=trial.before)]
        assert {prompt_of(each) for each in asked} >= set(trial.prompts.split())
        yield scene


@BOTH_STORES
async def test_sample_of_kills_resumes(tmp_path: Path, database_url: str | None) -> None:
    settings = Settings(home=tmp_path, embedder="hashing", database_url=database_url, collection=uuid4().hex)
    await fill(settings)
    dice, commits = random.Random(SEED), 2
    async with scene_of(PAR, Scripted(PAR.script), settings) as scene:
        for commit in dice.sample(range(1, scene.commits), commits):
            await scene.die_at(commit)
        await scene.kill_after(scene.seconds * dice.uniform(0.3, 0.7))
        assert scene.kills >= commits


@pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS.keys())
@pytest.mark.faults
@pytest.mark.timeout(7200)
async def test_kills_at_each_commit_and_at_random_moments_lose_nothing(home: Path, trial: Trial) -> None:
    """Checkpoints are commits, and so is the result of every call."""
    async with scene_of(trial, Scripted(trial.script), Settings(home=home, embedder="hashing")) as scene:
        assert len(scene.checkpoints) > 10
        for commit in range(1, scene.commits):
            await scene.die_at(commit)
        await scene.kill_at_random(random.Random(SEED), MOMENTS)
        assert scene.kills >= scene.commits - 1 + MOMENTS


@pytest.mark.nightly
@pytest.mark.vllm
async def test_kill_in_a_run_of_a_real_model(home: Path, vllm_url: str) -> None:
    backend = Mixed(url=vllm_url, scripted=Scripted(REAL_PAR.script), prompts=REAL_PAR.scripted)
    async with scene_of(REAL_PAR, backend, Settings(home=home, embedder="hashing", timeout=300)) as scene:
        await scene.die_at(random.Random(SEED).choice(scene.checkpoints[1:-1]))
        assert scene.kills == 1
