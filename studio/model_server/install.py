"""Installs the embedded model server into the running environment, from the locks that come with sleuth."""

import asyncio
import importlib.metadata
import importlib.util
import platform
import re
import sys
from pathlib import Path

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.torch_index import index_options
from sleuth.studio.model_server.weights import run_python
from sleuth.tools.errors import SleuthError

LOCK = Path(__file__).with_name("server.lock")
TORCH_LOCK = Path(__file__).with_name("torch.lock")
"""Without hashes, and therefore a file of its own: pip requires hashes of all packages that it installs together."""


def locked_pins() -> dict[str, str]:
    """Return name to version, as in the locks."""
    text = LOCK.read_text() + TORCH_LOCK.read_text()
    return dict(re.findall(r"^([\w.-]+)==([^\s\\]+)", text, re.MULTILINE))


def missing_pins(pins: dict[str, str]) -> dict[str, str]:
    """Return the pins that this environment does not satisfy; a local suffix such as +cpu does not matter."""
    return {name: version for name, version in pins.items() if _installed(name) != version}


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name).partition("+")[0]
    except importlib.metadata.PackageNotFoundError:
        return None


def check_platform(system: str, machine: str) -> None:
    """Raise if vLLM's CPU build has no wheels for the platform; the message names an alternative."""
    if (system, machine.lower()) not in {("Linux", "x86_64"), ("Linux", "amd64")}:
        raise SleuthError(
            f"The embedded model server runs on Linux on x86-64, not on {system} on {machine}. Start any "
            "OpenAI-compatible server (Ollama, LM Studio, llama.cpp) and set SLEUTH_MODEL_URL to it,\n"
            "for example SLEUTH_MODEL_URL=http://127.0.0.1:11434/v1"
        )


async def install(report: Report) -> list[str]:
    """Install the missing packages and return their names.

    Raises:
        SleuthError: the platform, the environment or the network does not allow it.
    """
    check_platform(platform.system(), platform.machine())
    missing = missing_pins(locked_pins())
    if not missing:
        return []
    if importlib.util.find_spec("pip") is None:
        raise SleuthError(
            f"This environment has no pip. Add it with `{sys.executable} -m ensurepip`, or install the lock with uv:\n"
            f"uv pip install --python {sys.executable} --no-deps -r {LOCK} -r {TORCH_LOCK}"
        )
    report(f"Installing {len(missing)} packages")
    if "torch" in missing:
        await _run_pip(*await asyncio.to_thread(index_options), "-r", str(TORCH_LOCK))
    if missing.keys() - {"torch"}:
        await _run_pip("--require-hashes", "-r", str(LOCK))
    return sorted(missing)


async def _run_pip(*arguments: str) -> None:
    status, lines = await run_python("-m", "pip", "install", "--no-deps", "--no-input", *arguments)
    if status:
        errors = [line for line in lines if line.startswith("ERROR:")]
        raise SleuthError("pip could not install the embedded model server:\n" + "\n".join(errors[-2:]))
