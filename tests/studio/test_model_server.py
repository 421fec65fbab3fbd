"""The embedded server's pieces that need no server: flags, locks, platform, processes."""

import asyncio
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.agents.roles.judging import CONSISTENCY
from sleuth.agents.roles.reading import READ
from sleuth.graphs.core.thresholds import fitted_thresholds
from sleuth.studio.model_server.adapter import resolve_adapter
from sleuth.studio.model_server.flags import (
    MARKER,
    ServeOptions,
    count_cores,
    fastest_dtype,
    serve_command,
    serve_environment,
)
from sleuth.studio.model_server.install import LOCK, TORCH_LOCK, check_platform, locked_pins, missing_pins
from sleuth.studio.model_server.models import PACKAGED
from sleuth.studio.model_server.server import ModelServerState, ServerFiles, stop
from sleuth.studio.model_server.torch_index import configured_links, find_cpu_wheel
from sleuth.tools.errors import SleuthError, UsageError

ROOT = Path(__file__).parents[2]


def value_after(command: list[str], flag: str) -> str:
    return command[command.index(flag) + 1]


def test_command_carries_every_option() -> None:
    options = ServeOptions(port=8123, dtype="float32", max_model_len=4096)
    command = serve_command(options, Path("/models/small"))
    assert command[:3] == [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    given = {
        **{"--port": "8123", "--host": "127.0.0.1", "--dtype": "float32", "--max-model-len": "4096"},
        **{"--model": "/models/small", "--served-model-name": "tiny-base"},
    }
    assert {flag: value_after(command, flag) for flag in given} == given
    assert "--enforce-eager" in command
    assert "--enforce-eager" not in serve_command(replace(options, eager=False), Path("/models/small"))


@pytest.mark.parametrize(
    ("features", "tiny", "small"),
    [
        ("avx2 fma", "float32", "float32"),
        ("avx2 avx512f avx512_vnni", "float32", "int8"),
        ("avx512f avx512_vnni avx512_bf16", "bfloat16", "int8"),
        ("avx_vnni amx_bf16", "bfloat16", "bfloat16"),
        ("", "float32", "float32"),
    ],
)
def test_the_processor_decides_the_type_of_numbers(features: str, tiny: str, small: str) -> None:
    assert fastest_dtype("tiny", features.split()) == tiny
    assert fastest_dtype("small", features.split()) == small


def test_threads_default_to_physical_cores() -> None:
    assert serve_environment(ServeOptions())["OMP_NUM_THREADS"] == str(count_cores())
    assert serve_environment(ServeOptions(threads=3))["OMP_NUM_THREADS"] == "3"
    assert serve_environment(ServeOptions(threads=3))["OMP_WAIT_POLICY"] == "PASSIVE"
    assert 1 <= count_cores() <= (os.cpu_count() or 1)


def test_server_lock_is_part_of_the_checkouts_lock() -> None:
    assert set(LOCK.read_text().split()) <= set((ROOT / "requirements.lock").read_text().split())
    lines = (LOCK.parent / "server.in").read_text().splitlines()
    assert {line.partition("=")[0] for line in lines if line[0] not in "#-"} <= locked_pins().keys()
    assert f"-r {TORCH_LOCK.name}" in lines


@pytest.mark.parametrize("lock", [ROOT / "requirements.lock", LOCK])
def test_every_locked_package_but_torch_has_a_hash(lock: Path) -> None:
    entries = lock.read_text().replace("\\\n", "").splitlines()
    assert entries
    assert [
        entry for entry in entries if not re.match(r"[\w.-]+==[\w.]+ +--hash=sha256:[0-9a-f]{64}( |$)", entry)
    ] == []
    assert "torch" not in {entry.partition("=")[0] for entry in entries}, "each build of torch has its own hash"
    assert re.findall(r"^[^#].*", TORCH_LOCK.read_text(), re.MULTILINE) == [f"torch=={locked_pins()['torch']}"]


def test_a_local_version_satisfies_its_pin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("example-built", "1.5+cpu"), ("example-old", "1.4")):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    monkeypatch.syspath_prepend(tmp_path)
    pins = {"example-built": "1.5", "example-old": "1.5", "example-absent": "1.0"}
    assert missing_pins(pins) == {"example-old": "1.5", "example-absent": "1.0"}


def test_other_platforms_get_an_alternative() -> None:
    check_platform("Linux", "x86_64")
    for system, machine in (("Darwin", "arm64"), ("Linux", "aarch64"), ("Windows", "AMD64")):
        with pytest.raises(SleuthError, match="SLEUTH_MODEL_URL"):
            check_platform(system, machine)


def test_find_links_are_read_from_files_and_environment() -> None:
    listed = "global.index-url='https://example.org/simple'\nglobal.find-links='/a\\n/b'\n:env:.find-links='/c'\n"
    assert configured_links(listed) == ["/a", "/b", "/c"]
    assert configured_links("") == []


def test_only_a_cpu_wheel_for_this_python_counts(tmp_path: Path) -> None:
    links = ["https://example.org/wheels", str(tmp_path / "absent"), tmp_path.as_uri()]
    (tmp_path / "torch-2.13.0-cp311-cp311-linux_x86_64.whl").touch()
    assert find_cpu_wheel(links, (3, 11)) is None
    (tmp_path / "torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl").touch()
    assert find_cpu_wheel(links, (3, 11)) == tmp_path
    assert find_cpu_wheel(links, (3, 12)) is None


def test_another_process_with_the_same_number_is_left_alone(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    files.prepare()
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as other:
        files.write(ModelServerState(pid=other.pid, options=ServeOptions(), started=0))
        asyncio.run(stop(tmp_path))
        assert other.poll() is None
        other.kill()


def adapter(folder: Path, weights: bytes = b"w") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps({"r": 4, "lora_alpha": 8}))
    (folder / "adapter_model.safetensors").write_bytes(weights)
    return folder


def test_adapter_is_the_packaged_one_by_default_and_merged(tmp_path: Path) -> None:
    packaged, other = resolve_adapter(None), adapter(tmp_path / "other")
    assert packaged and (Path(packaged) / "adapter_config.json").is_file()
    assert resolve_adapter(str(other)) == str(other)
    assert resolve_adapter("none") is None
    with pytest.raises(UsageError, match="holds no LoRA adapter"):
        resolve_adapter(str(tmp_path))
    for folder, served in ((None, "tiny-base"), (str(other), "tiny-tuned"), (packaged, "tiny")):
        options = ServeOptions(adapter=folder)
        assert value_after(serve_command(options, tmp_path), "--served-model-name") == options.model_name == served


def test_graph_model_takes_embeddings(tmp_path: Path) -> None:
    folder = adapter(tmp_path / "graph")
    options = ServeOptions(adapter=str(folder))
    assert "--enable-prompt-embeds" not in serve_command(options, tmp_path)
    for name in ("graph.json", "graph.safetensors"):
        (folder / name).touch()
    assert "--enable-prompt-embeds" in serve_command(options, tmp_path)


def test_checkpoint_of_another_adapter_or_recipe_is_not_used(tmp_path: Path) -> None:
    bare, tuned = ServeOptions(), ServeOptions(adapter=str(adapter(tmp_path / "one")))
    assert len({each.checkpoint(tmp_path) for each in (bare, tuned, ServeOptions(dtype="int8"))}) == 3
    for used in (bare, tuned):
        used.checkpoint(tmp_path).mkdir(parents=True)
        assert not used.is_converted(tmp_path)
        marker = used.checkpoint(tmp_path) / MARKER
        marker.write_text('{"recipe": 0}')
        assert not used.is_converted(tmp_path)
        marker.write_text(json.dumps(used.origin()))
        assert used.is_converted(tmp_path)
    adapter(tmp_path / "one", weights=b"v")
    assert not tuned.is_converted(tmp_path)


def test_thresholds_for_the_prompts_as_they_are_come_with_the_tuned_model() -> None:
    assert fitted_thresholds([*PACKAGED.values()], lambda _: "tiny").keys() == {CONSISTENCY.prompt, READ.prompt}
    assert fitted_thresholds([*PACKAGED.values()], lambda _: "another") == {}
