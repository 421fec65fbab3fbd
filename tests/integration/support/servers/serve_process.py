"""`sleuth serve` as a process of its own, to be killed and started again."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
from process import free_port

COMMAND = [sys.executable, "-c", "from sleuth.studio.cli.app import main; main()", "serve", "--verbose"]
SECONDS = 120.0


@dataclass(frozen=True)
class Served:
    """A server that is up."""

    process: "subprocess.Popen[bytes]"
    url: str
    log: Path

    def kill(self) -> None:
        """As by `kill -9`."""
        self.process.kill()
        self.process.wait(SECONDS)


@asynccontextmanager
async def sleuth_serve(folder: Path, **environment: str) -> AsyncIterator[Served]:
    """Starts the command in a folder, at a port that is free; ends it with a signal, if it has not ended."""
    for _ in range(5):  # somebody else may have taken the port meanwhile
        served = await asyncio.to_thread(_spawn, folder, environment)
        if await _up(served):
            break
    else:
        raise AssertionError(served.log.read_text())
    try:
        yield served
    finally:
        served.process.terminate()
        await asyncio.to_thread(served.process.wait, SECONDS)


def _spawn(folder: Path, environment: dict[str, str]) -> Served:
    port, log = free_port(), folder / "serve.log"
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SLEUTH_")}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [*COMMAND, "--port", str(port)], cwd=folder, env=kept | environment, stdout=output, stderr=subprocess.STDOUT
        )
    return Served(process, f"http://127.0.0.1:{port}", log)


async def _up(served: Served) -> bool:
    """Wait until it responds; return False if its process ends before."""
    async with httpx.AsyncClient(base_url=served.url, trust_env=False) as client:
        while served.process.poll() is None:
            try:
                if (await client.get("/openapi.json")).status_code in (200, 401):
                    return True
            except httpx.TransportError:
                await asyncio.sleep(0.1)
    return False
