"""Commands that stay have all their threads share two of glibc's arenas, unless the environment says otherwise."""

import os
import platform
import re
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="arenas are glibc's")

# Runs a command up to where its server would start; there eight threads are alive at once, and malloc tells its arenas.
TOLD = """
import ctypes, os, sys, threading, types

def tell(*_, **__):
    library = ctypes.CDLL(None)
    here = threading.Barrier(9)
    def work():
        library.malloc(100)
        here.wait()
        here.wait()
    threads = [threading.Thread(target=work) for _ in range(8)]
    for each in threads:
        each.start()
    here.wait()
    library.fopen.restype = ctypes.c_void_p
    out = ctypes.c_void_p(library.fopen(b"/dev/stdout", b"w"))
    library.malloc_info(0, out)
    library.fflush(out)
    os._exit(0)

sys.modules["sleuth.studio.server.main"] = types.SimpleNamespace(serve=tell)
sys.modules["sleuth.studio.mcp.server"] = types.SimpleNamespace(mcp_server=tell)
from sleuth.studio.cli import main
main()
"""


def arenas(*command: str, **environment: str) -> int:
    own = {name: value for name, value in os.environ.items() if name not in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")}
    run = subprocess.run(
        [sys.executable, "-c", TOLD, *command], env=own | environment, capture_output=True, text=True, check=True
    )
    return len(re.findall("<heap nr=", run.stdout))


@pytest.mark.parametrize("command", ["serve", "mcp"])
def test_threads_share_two_arenas(command: str) -> None:
    assert arenas(command) == 2


@pytest.mark.parametrize(
    "said",
    [{"MALLOC_ARENA_MAX": "4"}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=4"}],
    ids=lambda said: next(iter(said)),
)
def test_the_environment_has_the_last_word(said: dict[str, str]) -> None:
    assert arenas("serve", **said) == 4
