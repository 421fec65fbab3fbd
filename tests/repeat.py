"""Run the test modules of the last day's commits five times, in another order and with another hash seed each.

    python tests/repeat.py

fails if a test failed. After the first repetition it starts none that would end after five minutes.
"""

import os
import subprocess
import sys
from pathlib import Path
from time import monotonic

REPETITIONS = 5
SECONDS = 300
CHANGED = ("git", "log", "--since=1 day ago", "--diff-filter=d", "--name-only", "--format=", "--", "tests/*/test_*.py")
PYTEST = (sys.executable, "-m", "pytest", "--quiet", "-n", "auto", "--dist", "loadgroup", "--timeout-method", "thread")
OPTIONS = ("-p", "no:langsmith_plugin", "-p", "no:schemathesis", "-m", "not sweep and not nightly and not faults")
PASSED, NO_TESTS = 0, 5


def changed() -> list[str]:
    """Return the test modules that the last day's commits added or changed, and that still exist."""
    listed = subprocess.run(CHANGED, capture_output=True, check=True, text=True).stdout.splitlines()
    return sorted(name for name in {*listed} if Path(name).exists())


def main() -> int:
    """Return the exit status."""
    modules = changed()
    started, longest, done = monotonic(), 0.0, 0
    sys.stdout.write(f"{len(modules)} test modules changed in the last day\n")
    while modules and done < REPETITIONS and monotonic() - started + longest < SECONDS:
        seed = str(done + 1)
        begun = monotonic()
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [*PYTEST, *OPTIONS, f"--random-order-seed={seed}", *modules]
        if subprocess.run(command, env=environment, check=False).returncode not in (PASSED, NO_TESTS):
            sys.stdout.write(f"Failed in another order: PYTHONHASHSEED={seed} pytest --random-order-seed={seed}\n")
            return 1
        longest, done = max(longest, monotonic() - begun), done + 1
    sys.stdout.write(f"{done} of {REPETITIONS} repetitions passed in {monotonic() - started:.0f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
