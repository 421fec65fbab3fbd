"""Opening a home, searching, asking and closing it leave the process of the host application as it was."""

import subprocess
import sys
from pathlib import Path

import pytest

HOST = """
import asyncio, gc, locale, logging, os, signal, sys, threading, warnings
from decimal import getcontext
from pathlib import Path

import sleuth


def of_python(warning_filter):
    # Libraries add filters for their own warnings when they are imported.
    _, message, category, module, _ = warning_filter
    return message is None and (category.__module__ == "builtins" or module)


def see(event, arguments):
    if event == "import" and arguments[0] == "onnxruntime":
        telemetry.append(os.environ.get("ORT_DISABLE_TELEMETRY"))


def state():
    root = logging.getLogger()
    return {
        "gc": (gc.isenabled(), gc.get_freeze_count(), gc.get_threshold(), gc.get_debug(), [*gc.callbacks]),
        "signals": {number: signal.getsignal(number) for number in signal.valid_signals()},
        "wakeup": signal.set_wakeup_fd(-1),
        "logging": (root.level, [*root.handlers], [*root.filters], logging.root.manager.disable,
                    logging.getLoggerClass(), logging.getLogRecordFactory(), logging.raiseExceptions),
        "warnings": ([each for each in warnings.filters if of_python(each)], warnings.showwarning),
        "locale": locale.setlocale(locale.LC_ALL),
        "environment": dict(os.environ),
        "folder": (os.getcwd(), os.umask(0o22)),
        "policy": asyncio.get_event_loop_policy(),
        "hooks": (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook, sys.getprofile(),
                  sys.gettrace(), sys.get_asyncgen_hooks()),
        "limits": (sys.getrecursionlimit(), sys.getswitchinterval(), sys.get_int_max_str_digits(),
                   threading.stack_size(), getcontext().prec),
        "path": ([*sys.path], [*sys.path_hooks], [*sys.meta_path]),
        "streams": (sys.stdin, sys.stdout, sys.stderr),
        "threads": sorted(thread.name for thread in threading.enumerate()),
    }


async def use(home):
    loop = asyncio.get_running_loop()
    handler, factory = loop.get_exception_handler(), loop.get_task_factory()
    settings = sleuth.Settings(home=home / "home", model_url="http://127.0.0.1:9/v1")
    (home / "light.md").write_text("The Pellowrig Light was built by Edric Gannow in 1903.")
    await sleuth.ingest(home / "light.md", settings=settings)
    async with sleuth.open(settings) as app:
        assert (await app.search("Who built the light?"))[0].passage.document_id == "light.md"
        assert (await app.ask("Who built the Pellowrig Light?", method="reader")).text == "Edric Gannow"
    assert (loop.get_exception_handler(), loop.get_task_factory()) == (handler, factory)


telemetry = []
sys.addaudithook(see)
os.environ.pop("ORT_DISABLE_TELEMETRY", None)
os.umask(0o22)
gc.collect()
before = state()
asyncio.run(use(Path(sys.argv[1])))
after = state()
for name, value in before.items():
    if after[name] != value:
        print(name, value, after[name], sep="\\n  ")
if {*telemetry} != {"1"}:
    print("telemetry", telemetry)
"""


@pytest.mark.nightly
def test_home_leaves_the_process_as_it_was(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", HOST, tmp_path], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("", 0), done.stdout + done.stderr
