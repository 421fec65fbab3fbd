"""Proxies of the environment: no client uses them, and SLEUTH_PROXY is not used for a server on this machine."""

import ast
from pathlib import Path
from typing import Any

import httpx
import pytest

from sleuth.agents.llm.endpoint import Endpoint
from sleuth.tools.http import bounded_async_client, bounded_client
from sleuth.tools.search.vectors.embedder import EndpointEmbedder
from sleuth.tools.settings import Settings, client_options
from sleuth.tools.tracing.tracers import direct_session

ROOT = Path(__file__).parents[2]
CLIENTS = {"Client", "AsyncClient", "Session", "urlopen"}
MODULES = {"httpx", "httpx2", "requests"}
PROXY = "http://192.0.2.1:3128"
REMOTE, LOCAL = "http://models.example:8000/v1", "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, PROXY)
        monkeypatch.setenv(name.lower(), PROXY)
    monkeypatch.setenv("NO_PROXY", "nothing.example")


def proxies_of(client: Any) -> set[str]:
    """Return the proxies to which a client may connect."""
    pools = [transport._pool for transport in {client._transport, *client._mounts.values()} - {None}]
    return {str(pool._proxy_url.host.decode()) for pool in pools if hasattr(pool, "_proxy_url")}


@pytest.mark.parametrize("url", [REMOTE, LOCAL])
def test_client_ignores_the_proxies_of_the_environment(url: str) -> None:
    assert proxies_of(httpx.Client()) == {"192.0.2.1"}, "httpx itself uses them"
    assert proxies_of(httpx.Client(**client_options(url))) == set()
    assert proxies_of(httpx.AsyncClient(**client_options(url))) == set()
    assert proxies_of(bounded_client(client_options(url))) == set()
    assert proxies_of(bounded_async_client(client_options(url))) == set()
    assert proxies_of(Endpoint(Settings(model_url=url))._http) == set()
    assert proxies_of(EndpointEmbedder(url)._client) == set()


@pytest.mark.parametrize(
    "url",
    [
        REMOTE,
        "https://models.example",
        LOCAL,
        "http://localhost:1",
        "http://[::1]:8000",
        "http://[::ffff:127.0.0.1]:8000",
    ],
)
def test_own_proxy_is_used_except_on_this_machine(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {"proxy.example"} if "models.example" in url else set()
    proxy = "http://proxy.example:3128"
    monkeypatch.setenv("SLEUTH_PROXY", proxy)
    assert proxies_of(Endpoint(Settings(model_url=url))._http) == expected
    assert proxies_of(EndpointEmbedder(url, proxy=proxy)._client) == expected
    session = direct_session(url)
    assert (session.trust_env, session.proxies) == (False, {"all": proxy} if expected else {})


@pytest.mark.parametrize("proxy", ["socks5://a", "proxy:3128", "http://name:secret@proxy"])
def test_own_proxy_without_a_scheme_or_with_a_secret_is_refused(proxy: str) -> None:
    with pytest.raises(ValueError, match="proxy"):
        Settings(proxy=proxy)


def test_every_client_of_the_product_takes_the_same_options() -> None:
    others = []
    for folder in ("tools", "agents", "graphs", "studio"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "node_modules" in path.parts:
                continue
            for call in (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)):
                name = ast.unparse(call.func)
                if name.rpartition(".")[2] in CLIENTS and name.partition(".")[0] in MODULES:
                    given = [ast.unparse(each.value) for each in call.keywords if each.arg is None]
                    if not any(each.startswith(("client_options(", "options")) for each in given):
                        others.append(f"{path.relative_to(ROOT)}: {name}")
    # Downloads of models follow the environment, as those of packages do.
    assert others == [
        "tools/tracing/tracers.py: requests.Session",
        "studio/model_server/weights.py: httpx2.AsyncClient",
    ]
