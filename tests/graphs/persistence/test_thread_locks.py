"""Thread locks on files, for runs in SQLite."""

import asyncio
import sys
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from filelock import FileLock

from sleuth.graphs.persistence.thread_locks import FileThreadLocks
from sleuth.tools.errors import StoreError, ThreadBusy

HOLD = """
import asyncio, sys
from pathlib import Path
from sleuth.graphs.persistence.thread_locks import FileThreadLocks

async def main():
    async with FileThreadLocks(Path(sys.argv[1])).hold("monday"):
        print("held", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.fixture
def locks(tmp_path: Path) -> FileThreadLocks:
    return FileThreadLocks(tmp_path)


async def test_lock_is_held_by_one_holder(locks: FileThreadLocks) -> None:
    async with locks.hold("monday"):
        with pytest.raises(ThreadBusy, match=r"Thread monday is being run by process \d+ on .+\. Wait"):
            async with locks.hold("monday"):
                pytest.fail("two hold it")
        async with locks.hold("tuesday/../x"):
            assert await locks.held(["monday", "tuesday"]) == {"monday"}
    async with locks.hold("monday"):
        pass


async def test_lock_excludes_processes_and_ends_with_its_holder(locks: FileThreadLocks, tmp_path: Path) -> None:
    other = await asyncio.create_subprocess_exec(sys.executable, "-c", HOLD, tmp_path, stdout=asyncio.subprocess.PIPE)
    assert other.stdout and await other.stdout.readline() == b"held\n"
    assert await locks.held(["monday", "tuesday"]) == {"monday"}
    with pytest.raises(ThreadBusy, match=f"is being run by process {other.pid} on "):
        async with locks.hold("monday"):
            pytest.fail("two hold it")
    other.kill()
    await other.wait()
    assert await locks.held(["monday", "tuesday"]) == set()
    async with locks.hold("monday"):
        pass


async def test_cancelled_hold_holds_nothing(locks: FileThreadLocks) -> None:
    async def hold(over: asyncio.Event) -> None:
        async with locks.hold("monday"):
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
        async with locks.hold("monday"):
            pass


async def test_event_loop_does_not_wait_for_the_disk(locks: FileThreadLocks) -> None:
    with blockbuster_ctx("sleuth"):
        async with locks.hold("monday"):
            with pytest.raises(ThreadBusy):
                async with locks.hold("monday"):
                    pytest.fail("two hold it")


async def test_hold_waits_while_a_lock_is_only_examined(locks: FileThreadLocks, tmp_path: Path) -> None:
    async with locks.hold("monday"):
        (file,) = await asyncio.to_thread(lambda: [*tmp_path.glob("*.lock")])

    async def take() -> None:
        async with locks.hold("monday"):
            pass

    with FileLock(file):  # as `held` locks it
        taking = asyncio.create_task(take())
        await asyncio.sleep(0.05)
    await taking


async def test_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "leases").write_text("a file")
    with pytest.raises(StoreError, match=f"Thread monday cannot be locked: .*{tmp_path} can be written"):
        async with FileThreadLocks(tmp_path / "leases").hold("monday"):
            pytest.fail("it is held")
