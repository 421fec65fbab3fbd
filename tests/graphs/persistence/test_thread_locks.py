"""Who runs a thread, where runs are in SQLite."""

import asyncio
import sys
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from filelock import FileLock

from sleuth.graphs.persistence.thread_locks import FileLeases
from sleuth.tools.errors import ThreadBusy

HOLD = """
import asyncio, sys
from pathlib import Path
from sleuth.graphs.persistence.thread_locks import FileLeases

async def main():
    async with FileLeases(Path(sys.argv[1])).hold("monday"):
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def leases(tmp_path: Path) -> FileLeases:
    return FileLeases(tmp_path)


async def test_a_lease_is_held_by_one(leases: FileLeases) -> None:
    async with leases.hold("monday"):
        with pytest.raises(ThreadBusy, match=r"Thread monday is being run by process \d+ on .+\. Wait"):
            async with leases.hold("monday"):
                pytest.fail("two hold it")
        async with leases.hold("tuesday/../x"):
            pass
    async with leases.hold("monday"):
        pass


async def test_a_lease_holds_against_other_processes_and_ends_with_its_holder(
    leases: FileLeases, tmp_path: Path
) -> None:
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLD, tmp_path, stdout=asyncio.subprocess.PIPE)
    assert other.stdout and await other.stdout.readline() == b"held\n"
    assert await leases.held(["monday", "tuesday"]) == {"monday"}
    with pytest.raises(ThreadBusy, match=f"is being run by process {other.pid} on "):
        async with leases.hold("monday"):
            pytest.fail("two hold it")
    other.kill()
    await other.wait()
    assert await leases.held(["monday", "tuesday"]) == set()
    async with leases.hold("monday"):
        pass


async def test_whoever_is_cancelled_meanwhile_holds_nothing(leases: FileLeases) -> None:
    async def hold(over: asyncio.Event) -> None:
        async with leases.hold("monday"):
            over.set()
            await asyncio.sleep(60)

    for turns in range(12):
        held = asyncio.create_task(hold(over := asyncio.Event()))
        for _ in range(turns):
            await asyncio.sleep(0)
        if turns == 11:
            await over.wait()
        held.cancel()
        await asyncio.wait([held])
        async with leases.hold("monday"):
            pass


async def test_the_event_loop_does_not_wait_for_the_disk(leases: FileLeases) -> None:
    with blockbuster_ctx("sleuth"):
        async with leases.hold("monday"):
            with pytest.raises(ThreadBusy):
                async with leases.hold("monday"):
                    pytest.fail("two hold it")


async def test_held_names_leases_of_this_process(leases: FileLeases) -> None:
    assert await leases.held(["monday"]) == set()
    async with leases.hold("monday"):
        assert await leases.held(["monday", "tuesday"]) == {"monday"}
    assert await leases.held(["monday"]) == set()


async def test_hold_waits_while_a_lease_is_only_examined(leases: FileLeases, tmp_path: Path) -> None:
    async with leases.hold("monday"):
        (file,) = await asyncio.to_thread(lambda: [*tmp_path.glob("*.lock")])

    async def take() -> None:
        async with leases.hold("monday"):
            pass

    with FileLock(tmp_path.with_suffix(".turn")), FileLock(file):  # as `held` locks them
        taking = asyncio.create_task(take())
        await asyncio.wait([taking], timeout=0.3)
        assert not taking.done()
    await taking
