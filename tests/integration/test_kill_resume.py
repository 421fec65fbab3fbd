"""`kill -9` wherever a run may be: it ends with the same answer, and no call that had completed is sent again."""

import json
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from uuid import uuid4

import kills
import pytest
from four_hops import QUESTION, FourHops
from hashing_embedder import HashingEmbedder
from recording_proxy import CHAT, Proxy, Said, Sent, Upstream, completion, proxying
from run_child import Job

from sleuth.graphs.ingest import ingest
from sleuth.tools.settings import Settings

pytestmark = pytest.mark.integration

CORPUS = Path(__file__).parents[2] / "examples" / "corpus"
SEED = 20_260
MOMENTS = 50
IN_FLIGHT = 4
"""The most calls that the scripted run has between sending and commit: two steps side by side, twice."""


@pytest.fixture(scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the example corpus, shared by all runs of this module: their threads differ."""
    folder = tmp_path_factory.mktemp("kills") / "home"
    await fill(Settings(home=folder, embedder="hashing"))
    return folder


async def fill(settings: Settings) -> None:
    report = await ingest([CORPUS], settings=settings, embedder=HashingEmbedder())
    assert report.failed == 0


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    async with proxying(FourHops()) as running:
        yield running


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

    def __init__(self, settings: Settings, question: str, proxy: Proxy, **values: object) -> None:
        self.tally = kills.Tally()
        self._job = Job(settings=settings, question=question, thread="", values=values)
        self._proxy = proxy

    async def measure(self) -> None:
        """The uninterrupted run: what it says, how many commits it makes, how long it takes."""
        await kills.run(self._new())  # warms caches
        ended = await kills.run(self._new())
        self.seconds = ended.seconds
        self.expected = kills.essence(ended.answer)
        self.commits, self.checkpoints = ended.commits, ended.checkpoints

    def _new(self, die_after: int | None = None) -> Job:
        return Job(**{**vars(self._job), "thread": uuid4().hex, "die_after": die_after})

    async def die_at(self, commit: int) -> None:
        await kills.kill_and_resume(self._new(commit), self._proxy, self.expected, self.tally)

    async def kill_at_random(self, dice: random.Random, moments: int) -> None:
        """Kills at so many moments of a running child; one that had ended before its moment does not count."""
        while self.tally.kills < moments:
            await self.kill_after(dice.uniform(0, self.seconds))
            assert self.tally.late <= moments, "most runs end before they are killed"

    async def kill_after(self, seconds: float) -> None:
        await kills.kill_and_resume(self._new(), self._proxy, self.expected, self.tally, kill_after=seconds)


async def test_a_sample_of_kills(tmp_path: Path, proxy: Proxy, database_url: str | None) -> None:
    own = {"database_url": database_url, "collection": uuid4().hex}
    settings = Settings(home=tmp_path, model_url=proxy.url, embedder="hashing", **own)
    await fill(settings)
    scene, dice = Scene(settings, QUESTION, proxy), random.Random(SEED)
    await scene.measure()
    assert_everything_happened(proxy)
    for commit in dice.sample(range(1, scene.commits), 3):
        await scene.die_at(commit)
    await scene.kill_after(scene.seconds * dice.uniform(0.3, 0.7))
    assert scene.tally.kills >= 3
    assert scene.tally.most_repeated <= IN_FLIGHT


@pytest.mark.faults
async def test_kills_at_every_commit(home: Path, proxy: Proxy, tell: Tell) -> None:
    """Checkpoints are commits, and so is the result of every call."""
    scene = Scene(Settings(home=home, model_url=proxy.url, embedder="hashing"), QUESTION, proxy)
    await scene.measure()
    assert len(scene.checkpoints) > 30
    for commit in range(1, scene.commits):
        await scene.die_at(commit)
    tell(f"killed at each of {scene.commits} commits, {len(scene.checkpoints)} of them checkpoints: {scene.tally}")
    assert scene.tally.kills == scene.commits - 1
    assert scene.tally.most_repeated <= IN_FLIGHT


@pytest.mark.faults
async def test_kills_at_random_moments(home: Path, proxy: Proxy, tell: Tell) -> None:
    scene, dice = (
        Scene(Settings(home=home, model_url=proxy.url, embedder="hashing"), QUESTION, proxy),
        random.Random(SEED),
    )
    await scene.measure()
    await scene.kill_at_random(dice, MOMENTS)
    tell(f"killed at random moments: {scene.tally}")
    assert scene.tally.most_repeated <= IN_FLIGHT


@pytest.mark.vllm
async def test_a_kill_in_a_run_of_a_real_model(home: Path, vllm_url: str) -> None:
    async with proxying(Planned(vllm_url)) as proxy:
        scene, dice = real_scene(home, proxy), random.Random(SEED)
        await scene.measure()
        await scene.die_at(dice.choice(scene.checkpoints[1:-1]))
        assert scene.tally.kills == 1


@pytest.mark.vllm
@pytest.mark.faults
async def test_kills_at_every_checkpoint_and_at_random_moments_with_a_real_model(
    home: Path, vllm_url: str, tell: Tell
) -> None:
    async with proxying(Planned(vllm_url)) as proxy:
        scene, dice = real_scene(home, proxy), random.Random(SEED)
        await scene.measure()
        for commit in scene.checkpoints[:-1]:
            await scene.die_at(commit)
        assert scene.tally.kills == len(scene.checkpoints) - 1
        tell(f"a real model, killed at each of {len(scene.checkpoints)} checkpoints: {scene.tally}")
        await scene.kill_at_random(dice, MOMENTS)
        tell(f"and at {MOMENTS} random moments: {scene.tally}")
        assert scene.tally.most_repeated <= IN_FLIGHT


class Planned(Upstream):
    """The real server, but for the plan: left alone the small model plans one step for nearly every question."""

    async def say(self, method: str, path: str, body: bytes) -> Said:
        if path == CHAT and b'"planner_plan"' in body:
            return completion(json.dumps({"steps": REAL_PLAN}))
        return await super().say(method, path, body)


REAL_PLAN = [
    {"question": "Who built the Pellowrig Light?", "needs": []},
    {"question": "Where was the builder of the Pellowrig Light born?", "needs": [1]},
    {"question": "Which fair is held in that place?", "needs": [2]},
]


def real_scene(home: Path, proxy: Proxy) -> Scene:
    settings = Settings(home=home, model_url=proxy.url, embedder="hashing", timeout=300)
    return Scene(settings, QUESTION, proxy, coarse_k=2, fine_k=2)


def assert_everything_happened(proxy: Proxy) -> None:
    """A server that stops driving a run through repairs and returns would leave the kills with less to hit."""
    roles = Counter(role_of(sent) for sent in proxy.calls)
    repairs = sum(b'"assistant"' in sent.body for sent in proxy.calls)
    assert repairs == 2, "one in each of the two uninterrupted runs"
    assert roles.keys() == {
        "planner_plan",
        "drafter_draft",
        "drafter_conclude",
        "reviewer_review",
        "refiner_refine",
        "answerer_answer",
    }


def role_of(sent: Sent) -> str:
    return str(json.loads(sent.body)["response_format"]["json_schema"]["name"])
