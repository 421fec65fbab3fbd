"""`kill -9` wherever a run may be: it ends with the same answer, and no call that had completed is sent again."""

import json
import random
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path
from uuid import uuid4

import kill as kills
import pytest
from fault_scenarios import PAR, TRIALS, WITH_MODEL, Trial
from hashing_embedder import HashingEmbedder
from recording_proxy import Backend, Proxy, Sent, Upstream, proxying
from run_child import BEFORE, Job
from scripted_backend import Mixed, Scripted, prompt_of
from windows import Sweep

from sleuth.graphs.ingestion.pipeline import ingest
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

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


Tell = Callable[[str], None]


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Tell:
    """Prints a line of numbers past pytest's capture: what a sweep has seen is its result."""

    def write(line: str) -> None:
        with capsys.disabled():
            sys.stdout.write(f"\n{line}\n")

    return write


class Scene:
    """One question, asked over and over in threads of its own."""

    def __init__(self, job: Job, proxy: Proxy, *, widest: int) -> None:
        self.tally = kills.Tally()
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
        await kills.kill_and_resume(self._new(commit), self._proxy, self.expected, self.tally)

    async def kill_at_random(self, dice: random.Random, moments: int) -> None:
        """Kill a child at several moments; a child that ended before its moment does not count."""
        until = self.tally.kills + moments
        while self.tally.kills < until:
            await self.kill_after(dice.uniform(0, self.seconds))
            assert self.tally.late <= moments, "most runs end before they are killed"

    async def kill_after(self, seconds: float) -> None:
        ended = await kills.kill_and_resume(self._new(), self._proxy, self.expected, self.tally, kill_after=seconds)
        if ended.answer is not None:  # the machine has become faster than it was when the run was measured
            self.seconds = min(self.seconds, ended.seconds)

    def check(self, kills: int) -> None:
        assert self.tally.kills >= kills
        assert self.tally.most_repeated <= self._in_flight


@asynccontextmanager
async def scene_of(trial: Trial, backend: Backend, settings: Settings) -> AsyncIterator[Scene]:
    """A measured scene; if its trial no longer drove the run everywhere, the kills would have less to hit."""
    async with proxying(backend) as proxy:
        asking = settings.model_copy(update={"model_url": proxy.url})
        job = Job(settings=asking, method=trial.method, question=trial.question, thread="", values=trial.values)
        scene = Scene(job, proxy, widest=trial.widest)
        asked = [json.loads(sent.body) for sent in await scene.measure(before=trial.before)]
        assert {prompt_of(each) for each in asked} >= trial.prompts
        yield scene


# A scripted model that covers all paths of a method

EVERY = pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS.keys())


async def test_sample_of_kills_resumes(tmp_path: Path, database_url: str | None) -> None:
    own = {"database_url": database_url, "collection": uuid4().hex}
    settings = Settings(home=tmp_path, embedder="hashing", **own)
    await fill(settings)
    await sample_kills(PAR, settings, 2)


async def sample_kills(trial: Trial, settings: Settings, commits: int) -> None:
    dice = random.Random(SEED)
    async with scene_of(trial, Scripted(trial.script), settings) as scene:
        for commit in dice.sample(range(1, scene.commits), commits):
            await scene.die_at(commit)
        await scene.kill_after(scene.seconds * dice.uniform(0.3, 0.7))
        scene.check(kills=commits)


@EVERY
@pytest.mark.faults
@pytest.mark.timeout(7200)
async def test_kills_at_each_commit_and_at_random_moments_lose_nothing(home: Path, trial: Trial, tell: Tell) -> None:
    """Checkpoints are commits, and so is the result of every call."""
    sweep = Sweep(f"kills-{trial.method}", 1)
    if not sweep.due():
        return
    async with scene_of(trial, Scripted(trial.script), Settings(home=home, embedder="hashing")) as scene:
        assert len(scene.checkpoints) > 10
        for commit in range(1, scene.commits):
            await scene.die_at(commit)
        total = f"{scene.commits} commits, {len(scene.checkpoints)} of them checkpoints"
        tell(f"{trial.method}, killed at each of {total}: {scene.tally}")
        await scene.kill_at_random(random.Random(SEED), MOMENTS)
        tell(f"and at {MOMENTS} random moments: {scene.tally}")
        scene.check(kills=scene.commits - 1 + MOMENTS)
    sweep.passed(0, **asdict(scene.tally))


# A real model, left alone but for what would make it skip most of a method

WITH_A_MODEL = pytest.mark.parametrize("trial", WITH_MODEL.values(), ids=WITH_MODEL.keys())


def real(trial: Trial, url: str, home: Path) -> AbstractAsyncContextManager[Scene]:
    backend = Mixed(real=Upstream(url), scripted=Scripted(trial.script), prompts=trial.scripted)
    return scene_of(trial, backend, Settings(home=home, embedder="hashing", timeout=300))


@pytest.mark.nightly
@pytest.mark.vllm
async def test_kill_in_a_run_of_a_real_model(home: Path, vllm_url: str) -> None:
    """One method; `make test-faults` kills all of them."""
    async with real(WITH_MODEL["par-rag"], vllm_url, home) as scene:
        await scene.die_at(random.Random(SEED).choice(scene.checkpoints[1:-1]))
        scene.check(kills=1)


@WITH_A_MODEL
@pytest.mark.vllm
@pytest.mark.faults
@pytest.mark.timeout(7200)
async def test_kills_at_checkpoints_with_a_real_model(home: Path, vllm_url: str, trial: Trial, tell: Tell) -> None:
    sweep = Sweep(f"kills-with-a-model-{trial.method}", 1)
    if not sweep.due():
        return
    async with real(trial, vllm_url, home) as scene:
        for commit in scene.checkpoints[:-1]:
            await scene.die_at(commit)
        tell(f"{trial.method} with a real model, killed at each of {len(scene.checkpoints)} checkpoints: {scene.tally}")
        await scene.kill_at_random(random.Random(SEED), MOMENTS)
        tell(f"and at {MOMENTS} random moments: {scene.tally}")
        scene.check(kills=len(scene.checkpoints) - 1 + MOMENTS)
    sweep.passed(0, **asdict(scene.tally))
