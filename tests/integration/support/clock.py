"""A clock that is behind, for processes that are started with it: a library that is loaded before libc."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

_SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (clock == CLOCK_REALTIME && !result) now->tv_sec -= atol(getenv("SECONDS_BEHIND"));
    return result;
}
"""


class Clock:
    """Environment variables that set a process' clock back."""

    def __init__(self, library: Path) -> None:
        self._library = library

    def behind(self, seconds: int) -> dict[str, str]:
        """Return the variables for a clock that is a number of seconds behind."""
        return {"LD_PRELOAD": str(self._library), "SECONDS_BEHIND": str(seconds)} if seconds else {}


@pytest.fixture(scope="session")
def clock(tmp_path_factory: pytest.TempPathFactory) -> Clock:
    """Compiles the library; skips, or fails where nothing may be skipped, without a C compiler."""
    folder = tmp_path_factory.mktemp("clock")
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(_SOURCE)
    compiler = shutil.which("cc")
    if compiler is None:
        (pytest.fail if os.environ.get("SLEUTH_REQUIRE_ALL") == "1" else pytest.skip)("There is no C compiler (cc).")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return Clock(library)
