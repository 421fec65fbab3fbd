"""The files in `examples/deploy`: a server behind nginx, and what systemd and Caddy accept."""

import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import httpx
import pytest
from process import free_port, program, running
from scripted_backend import Scripted, proxying
from serve_process import Served, sleuth_serve
from serve_scene import ANNA, KEYS, READING, begin, told, upload

DEPLOY = Path(__file__).parents[3] / "examples" / "deploy"
CERTIFICATE = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=sleuth.example"]
SURROUNDINGS = "daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{ access_log off; include {folder}/sleuth.conf; }}\n"


@contextmanager
def nginx(folder: Path, served: Served) -> Iterator[str]:
    """Run nginx with our configuration, at other ports and with a certificate of its own; yield its address."""
    command = program("nginx is not installed: apt-get install nginx-core", "nginx", folder="usr/sbin")
    names = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run(["openssl", *CERTIFICATE, *names], check=True, capture_output=True)
    plain, secure = free_port(), free_port()
    text = (DEPLOY / "nginx.conf").read_text()
    for old, new in {
        "/etc/letsencrypt/live/sleuth.example": str(folder),
        "127.0.0.1:8100": served.url.removeprefix("http://"),
        "[::]:443": f"[::1]:{secure}",
        "[::]:80": f"[::1]:{plain}",
        "listen 443": f"listen 127.0.0.1:{secure}",
        "listen 80": f"listen 127.0.0.1:{plain}",
    }.items():
        assert old in text
        text = text.replace(old, new)
    (folder / "sleuth.conf").write_text(text)
    (folder / "nginx.conf").write_text(SURROUNDINGS.format(folder=folder))
    arguments = [command, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "error.log")]
    subprocess.run([*arguments, "-t"], check=True, capture_output=True)
    with running(arguments, folder / "error.log", is_up=partial(listens, secure)):
        yield f"https://127.0.0.1:{secure}"


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.nightly
async def test_server_behind_nginx_streams_and_limits_each_address(tmp_path: Path) -> None:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    async with proxying(Scripted(lambda _: READING)) as model:
        environment = {"SLEUTH_HOME": str(tmp_path / "home"), "SLEUTH_MODEL_URL": model.url, "SLEUTH_API_KEYS": KEYS}
        async with (
            sleuth_serve(tmp_path, SLEUTH_EMBEDDER="none", **environment) as served,
            httpx.AsyncClient(base_url=served.url, timeout=120) as direct,
        ):
            with nginx(tmp_path, served) as url:
                async with httpx.AsyncClient(base_url=url, verify=trusting, timeout=120, headers=ANNA) as client:
                    await use(client, direct)


async def use(client: httpx.AsyncClient, direct: httpx.AsyncClient) -> None:
    await upload(client)
    assert [name for _, name, _ in await told(client, await begin(client))][-1] == "answer"
    assert (await client.get("/metrics")).status_code == 404
    page = await client.get("/")
    assert page.headers["Strict-Transport-Security"]
    for number in range(25):  # nginx names the address of its client
        wrong = {"Authorization": f"Bearer {number}", "X-Forwarded-For": "192.0.2.7"}
        reply = await direct.get("/v1/runs", headers=wrong)
    assert reply.status_code == 429
    assert (await client.get("/v1/runs")).status_code == 200


def test_nginx_configuration_of_the_cluster_is_valid(tmp_path: Path) -> None:
    command = program("nginx is not installed: apt-get install nginx-core", "nginx", folder="usr/sbin")
    text = (DEPLOY / "nginx.cluster.conf").read_text()
    for name in ("sleuth-1", "sleuth-2"):
        assert f"server {name}:8100 " in text
        text = text.replace(name, "127.0.0.1")
    (tmp_path / "sleuth.conf").write_text(text)
    (tmp_path / "nginx.conf").write_text(SURROUNDINGS.format(folder=tmp_path))
    arguments = ["-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "error.log")]
    subprocess.run([command, *arguments, "-t"], check=True, capture_output=True)


def test_unit_is_accepted_by_systemd(tmp_path: Path) -> None:
    analyze = program("systemd is not installed: apt-get install systemd", "systemd-analyze")
    text = (DEPLOY / "sleuth.service").read_text()
    unit = tmp_path / "sleuth.service"
    unit.write_text(text.replace("/srv/sleuth/.venv/bin/sleuth", sys.executable))
    ended = subprocess.run([analyze, "verify", unit], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_caddyfile_is_valid() -> None:
    caddy = program("Caddy is not installed: apt-get install caddy", "caddy")
    command = [caddy, "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")]
    subprocess.run(command, check=True, capture_output=True)
