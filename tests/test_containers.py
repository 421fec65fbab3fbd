"""The image and the Compose file against the project."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from sleuth.studio.model_server.flags import gpu_command
from sleuth.tools.settings import Settings

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
VARIABLE = re.compile(r"\$\{(\w+)")


@pytest.mark.parametrize("name", SERVICES)
def test_service_has_health_check_and_kept_volume(name: str) -> None:
    service = SERVICES[name]
    assert "healthcheck" in service or ("build" in service and "HEALTHCHECK" in DOCKERFILE)
    assert service["restart"] == "unless-stopped"
    assert [volume.split(":")[0] in COMPOSE["volumes"] for volume in service["volumes"]] == [True]


def test_variables_of_the_server_are_settings() -> None:
    names = {*SERVICES["sleuth"]["environment"], *re.findall(r"SLEUTH_\w+", DOCKERFILE)}
    assert {name.removeprefix("SLEUTH_").lower() for name in names} <= Settings.model_fields.keys()


def test_variables_are_documented() -> None:
    documented = (ROOT / "docs" / "operations" / "containers.md").read_text(encoding="utf-8")
    used = set(VARIABLE.findall((ROOT / "compose.yaml").read_text(encoding="utf-8")))
    assert {name for name in used if name not in documented} == set()


def test_vllm_has_the_printed_command() -> None:
    printed = shlex.split(gpu_command("${VLLM_MODEL:-Qwen/Qwen3-8B}", port=8000, gpus=1))
    assert [*SERVICES["vllm"]["entrypoint"], *SERVICES["vllm"]["command"]] == printed


def test_chroma_has_the_locked_version() -> None:
    (locked,) = re.findall(r"^chromadb==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert SERVICES["chroma"]["image"] == f"chromadb/chroma:{locked}"
