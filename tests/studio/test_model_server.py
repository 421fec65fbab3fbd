"""The embedded server's pieces that need no server: flags, locks, platform, processes."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from sleuth.agents.roles.judging import CONSISTENCY
from sleuth.agents.roles.reading import READ
from sleuth.graphs.core.thresholds import fitted_thresholds
from sleuth.studio.model_server.adapter import PACKAGED, fingerprint, resolve_adapter
from sleuth.studio.model_server.convert import MARKER, Checkpoint
from sleuth.studio.model_server.flags import ServeOptions, count_cores, gpu_command, serve_command, serve_environment
from sleuth.studio.model_server.install import LOCK, TORCH_LOCK, check_platform, locked_pins, missing_pins
from sleuth.studio.model_server.process import (
    ModelServerState,
    Process,
    ServerFiles,
    end_session,
    identify,
    is_alive,
    session_members,
)
from sleuth.studio.model_server.torch_index import configured_links, find_cpu_wheel
from sleuth.tools.errors import SleuthError, UsageError

ROOT = Path(__file__).parents[2]
# A leader with one descendant; both only wait.
FAMILY = "import subprocess, sys, time; subprocess.Popen(['sleep', '60']); print(flush=True); time.sleep(60)"


def value_after(command: list[str], flag: str) -> str:
    return command[command.index(flag) + 1]


def start_family() -> Process:
    leader = subprocess.Popen([sys.executable, "-c", FAMILY], start_new_session=True, stdout=subprocess.PIPE)
    with leader.stdout:
        leader.stdout.readline()
    return identify(leader.pid)


def test_command_carries_every_option() -> None:
    options = ServeOptions(port=8123, dtype="float32", max_model_len=4096)
    command = serve_command(options, Path("/models/small"))
    assert command[:3] == [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    given = {
        **{"--port": "8123", "--host": "127.0.0.1", "--dtype": "float32", "--max-model-len": "4096"},
        **{"--model": "/models/small", "--served-model-name": "smollm2-135m-instruct"},
    }
    assert {flag: value_after(command, flag) for flag in given} == given
    assert "--enforce-eager" in command
    assert "--enforce-eager" not in serve_command(replace(options, eager=False), Path("/models/small"))


def test_threads_default_to_physical_cores() -> None:
    assert serve_environment(ServeOptions())["OMP_NUM_THREADS"] == str(count_cores())
    assert serve_environment(ServeOptions(threads=3))["OMP_NUM_THREADS"] == "3"
    assert serve_environment(ServeOptions(threads=3))["OMP_WAIT_POLICY"] == "PASSIVE"
    assert 1 <= count_cores() <= (os.cpu_count() or 1)


def test_gpu_command_is_ready_for_a_shell() -> None:
    assert gpu_command("org/a model", port=9000, gpus=1).startswith("vllm serve 'org/a model' --port 9000 ")
    assert "--tensor-parallel-size 4" in gpu_command("m", port=9000, gpus=4)


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


def test_state_survives_a_round_trip(tmp_path: Path) -> None:
    files = ServerFiles(tmp_path)
    assert files.read() is None
    files.prepare()
    process = Process(pid=1, ticks=2, boot="b")
    options = ServeOptions(port=8123, dtype="float32", adapter="/a")
    state = ModelServerState(process=process, options=options, started=4.5)
    files.write(state)
    assert files.read() == state
    assert state.url == "http://127.0.0.1:8123/v1"


@pytest.mark.parametrize("killed", [False, True])
async def test_session_ends_with_all_its_members(*, killed: bool) -> None:
    leader = start_family()
    assert len(session_members(leader)) == 2
    if killed:
        os.kill(leader.pid, signal.SIGKILL)
        while is_alive(leader):  # noqa: ASYNC110 - nothing announces the end of a process
            await asyncio.sleep(0.01)
    assert await end_session(leader) == 2 - killed
    assert session_members(leader) == []


async def test_another_process_with_the_same_number_is_left_alone() -> None:
    leader = start_family()
    for other in (replace(leader, ticks=leader.ticks - 1), replace(leader, boot="another boot")):
        assert not is_alive(other)
        assert await end_session(other) == 0
    assert is_alive(leader)
    await end_session(leader)


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
    for folder, served in ((None, "smollm2-135m-instruct"), (str(other), "sleuth-small")):
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
    one = adapter(tmp_path / "one")
    first = fingerprint(one)
    assert len({Checkpoint("tiny", *each).folder(tmp_path) for each in ((one,), (), (None, True))}) == 3
    assert fingerprint(adapter(tmp_path / "one", weights=b"v")) != first
    for used in (Checkpoint("tiny"), Checkpoint("tiny", one)):
        used.folder(tmp_path).mkdir(parents=True)
        assert not used.is_written(tmp_path)
        (used.folder(tmp_path) / MARKER).write_text('{"recipe": 0}')
        assert not used.is_written(tmp_path)


def test_thresholds_for_the_prompts_as_they_are_come_with_the_tuned_model() -> None:
    assert fitted_thresholds(PACKAGED, lambda _: "sleuth-small").keys() == {CONSISTENCY.prompt, READ.prompt}
    assert fitted_thresholds(PACKAGED, lambda _: "another") == {}
