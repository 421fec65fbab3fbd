"""The demonstration of `make demo`: ingest documents, ask with two methods, kill and resume a run, fork a run.

Every line that starts with $ is a command that you can run yourself.
"""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parent
SLEUTH = Path(sys.executable).with_name("sleuth")
HOME = Path(os.environ.get("SLEUTH_HOME", EXAMPLES.parent / ".cache" / "demo"))
PORT = 8017

QUESTION = "Where was the builder of the Pellowrig Light born?"
FEW = ("--set", "coarse_k=3", "--set", "fine_k=3", "--set", "skip_supported=false")
"""Settings for a very small model: fewer passages, and a review of every draft."""


def main() -> int:
    """Run the demonstration; return the exit status."""
    began = time.monotonic()
    os.environ["SLEUTH_HOME"] = str(HOME)
    serving = "SLEUTH_MODEL_URL" not in os.environ
    title("Documents: the islands of Ullavar, in Markdown, HTML, PDF, DOCX, CSV and text")
    sleuth("ingest", str(EXAMPLES / "corpus"))
    title("A question that takes two look-ups, without a language model")
    sleuth("ask", QUESTION, "--method", "reader")
    if serving:
        os.environ["SLEUTH_MODEL_URL"] = f"http://127.0.0.1:{PORT}/v1"
        title("A model: tiny, 135 million parameters, on vLLM's CPU build (or the server at SLEUTH_MODEL_URL)")
        sleuth("model", "install")
        sleuth("model", "serve", "--port", str(PORT))
    title("The same question with PAR-RAG, which plans both look-ups")
    sleuth("ask", QUESTION, "--method", "par-rag", *FEW, "--thread", thread("whole"))
    title("The same run, killed (kill -9) before its review, then resumed: finished steps are not repeated")
    kill_after("retrieve_fine", "ask", QUESTION, "--method", "par-rag", *FEW, "--thread", thread("killed"))
    sleuth("resume", thread("killed"))
    title("Every step is a checkpoint; a fork continues from an earlier one with a changed state")
    sleuth("runs", "history", thread("whole"))
    fork()
    sleuth("runs", "list")
    title(f"Done in {time.monotonic() - began:.0f} s. The model is very small, and its answers are often wrong.")
    print(next_steps(serving))
    return 0


def thread(name: str) -> str:
    """Return a thread id of this demonstration."""
    return f"demo-{os.getpid()}-{name}"


def fork() -> None:
    """Fork the first run before its review with another draft, and run the branch."""
    moments: list[dict[str, Any]] = json.loads(sleuth("runs", "history", thread("whole"), "--json", quiet=True))
    before = next((moment for moment in reversed(moments) if "retrieve_fine" in moment["next"]), moments[-2])
    changed = 'drafts={"1": {"answer": "Hesper Lodewick", "citations": []}}'
    sleuth("runs", "fork", thread("whole"), "--at", before["checkpoint"], "--state", changed)
    sleuth("resume", thread("whole"))


def title(text: str) -> None:
    """Print a heading."""
    print(f"\n\033[1m── {text}\033[0m", flush=True)


def shown(arguments: tuple[str, ...]) -> str:
    """Return the command as typed in a shell."""
    return f"\033[36m$ sleuth {shlex.join(arguments)}\033[0m"


def sleuth(*arguments: str, quiet: bool = False) -> str:
    """Run a command; exit if it fails."""
    if not quiet:
        print(shown(arguments), flush=True)
    done = subprocess.run([SLEUTH, *arguments], stdout=subprocess.PIPE if quiet else None, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return done.stdout or ""


def kill_after(node: str, *arguments: str) -> None:
    """Start a command and kill it when it reports that a node has finished."""
    print(shown(arguments), flush=True)
    with subprocess.Popen([SLEUTH, *arguments], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        for line in process.stderr:
            print(line, end="", flush=True)
            if line.startswith(f"● {node}"):
                break
        process.send_signal(signal.SIGKILL)
    print(f"\033[31mkill -9 {process.pid}\033[0m", flush=True)


def next_steps(serving: bool) -> str:
    """Return commands to try next."""
    url = f"\n    export SLEUTH_MODEL_URL={os.environ['SLEUTH_MODEL_URL']}" if serving else ""
    stop = "\n    sleuth model stop                                   # stops the model server" if serving else ""
    return f"""
Try next:
    export PATH="{SLEUTH.parent}:$PATH" SLEUTH_HOME={HOME}{url}
    sleuth ask "Who founded the firm that employed the author of The Salt Ledger as a clerk?"
    sleuth search "Hollin Bridge" --mode keyword
    sleuth runs list; sleuth methods; sleuth doctor
    sleuth ingest PATH_TO_YOUR_DOCUMENTS{stop}"""


if __name__ == "__main__":
    sys.exit(main())
