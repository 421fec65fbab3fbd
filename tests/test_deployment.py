"""The image, the Compose files and the Kubernetes manifests: all names that they use exist."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from sleuth.studio.model_server.flags import gpu_command
from sleuth.tools.settings import Settings

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "examples" / "deploy"
KUBERNETES = DEPLOY / "kubernetes"


def load(file: Path) -> Any:
    return yaml.safe_load(file.read_text())


DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = load(ROOT / "compose.yaml")
SERVICES: dict[str, Any] = COMPOSE["services"]


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
    used = set(re.findall(r"\$\{(\w+)", (ROOT / "compose.yaml").read_text(encoding="utf-8")))
    missing = {name for name in used if name not in documented}
    assert not missing, f"docs/operations/containers.md: describe {missing}, which compose.yaml uses"


def test_vllm_has_the_printed_command() -> None:
    printed = shlex.split(gpu_command("${VLLM_MODEL:-Qwen/Qwen3-8B}", port=8000, gpus=1))
    assert [*SERVICES["vllm"]["entrypoint"], *SERVICES["vllm"]["command"]] == printed


def test_chroma_has_the_locked_version() -> None:
    (locked,) = re.findall(r"^chromadb==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert SERVICES["chroma"]["image"] == f"chromadb/chroma:{locked}"


def test_cluster_has_the_services_and_volumes_that_it_names() -> None:
    cluster = load(DEPLOY / "compose.cluster.yaml")
    services = cluster["services"]
    for service in services.values():
        base = service.get("extends")
        if base:
            assert (DEPLOY / base["file"]).resolve() == ROOT / "compose.yaml"
            service |= {"volumes": SERVICES[base["service"]]["volumes"]}
        assert set(service.get("depends_on", ())) <= services.keys()
        for volume in service["volumes"]:
            source = volume.partition(":")[0]
            assert source in cluster["volumes"] or (DEPLOY / source).is_file()


def test_servers_of_the_cluster_have_the_environment_of_the_single_one() -> None:
    cluster = load(DEPLOY / "compose.cluster.yaml")
    wanted = SERVICES["sleuth"]["environment"].keys()
    for name in ("sleuth-1", "sleuth-2"):
        assert wanted <= cluster["services"][name]["environment"].keys()


def objects(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a kustomization and of those that it includes."""
    for name in load(folder / "kustomization.yaml")["resources"]:
        if (folder / name).is_dir():
            yield from objects((folder / name).resolve())
        else:
            yield from yaml.safe_load_all((folder / name).read_text())


@pytest.fixture
def complete() -> list[dict[str, Any]]:
    return [*objects(KUBERNETES / "complete")]


def test_patches_and_configuration_apply_to_objects_that_exist(complete: list[dict[str, Any]]) -> None:
    present = {(each["kind"], each["metadata"]["name"]) for each in complete}
    overlay = load(KUBERNETES / "complete" / "kustomization.yaml")
    for patch in overlay["patches"]:
        patched = load(KUBERNETES / "complete" / patch["path"])
        assert (patched["kind"], patched["metadata"]["name"]) in present
    base = load(KUBERNETES / "base" / "kustomization.yaml")
    assert {each["name"] for each in overlay["configMapGenerator"]} <= {
        each["name"] for each in base["configMapGenerator"]
    }


def test_selectors_and_ports_refer_to_pods(complete: list[dict[str, Any]]) -> None:
    pods = {
        each["spec"]["template"]["metadata"]["labels"]["app"]: each["spec"]["template"]["spec"]
        for each in complete
        if each["kind"] in ("StatefulSet", "Deployment")
    }
    for each in complete:
        if each["kind"] == "Service":
            ports = {
                port["name"]
                for container in pods[each["spec"]["selector"]["app"]]["containers"]
                for port in container["ports"]
            }
            assert {port["targetPort"] for port in each["spec"]["ports"]} <= ports
        if each["kind"] in ("PodDisruptionBudget", "NetworkPolicy"):
            selector = each["spec"].get("selector") or each["spec"]["podSelector"]
            assert selector["matchLabels"]["app"] in pods


def test_pods_have_no_privileges(complete: list[dict[str, Any]]) -> None:
    for each in complete:
        if each["kind"] not in ("StatefulSet", "Deployment"):
            continue
        pod, (container,) = each["spec"]["template"]["spec"], each["spec"]["template"]["spec"]["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert container["readinessProbe"]
        if each["metadata"]["name"] != "vllm":  # its image runs as root and writes to its own folders
            assert pod["securityContext"]["runAsNonRoot"] is True
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_images_and_commands_are_those_of_the_compose_file(complete: list[dict[str, Any]]) -> None:
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in complete
        if "template" in each.get("spec", {})
    }
    for name in ("postgres", "chroma"):
        assert pods[name]["containers"][0]["image"] == SERVICES[name]["image"]
    printed = shlex.split(gpu_command("Qwen/Qwen3-8B", port=8000, gpus=1))
    assert ["vllm", "serve", *pods["vllm"]["containers"][0]["args"]] == printed
