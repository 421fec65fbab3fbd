"""The modules that `sleuth` imports before it selects a command."""

import subprocess
import sys

import pytest

OWN = {
    "sleuth",
    "sleuth.studio",
    "sleuth.studio.cli",
    "sleuth.studio.cli.app",
    "sleuth.tools",
    "sleuth.tools.errors",
}
TYPER = {"typer", "annotated_doc", "shellingham", "click", "typing_extensions"}

RUN = """
from sleuth.studio.cli import main
try:
    main()
except SystemExit:
    pass
"""


def imported(script: str, *arguments: str) -> tuple[set[str], set[str]]:
    """Run a script; return the modules of sleuth and the foreign packages that it imported."""
    script = f"import sys\nbefore = set(sys.modules)\n{script}\nprint(*set(sys.modules) - before, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True)
    modules = set(done.stderr.split())
    own = {module for module in modules if module.split(".")[0] == "sleuth"}
    packages = {module.split(".")[0] for module in modules - own}
    return own, packages - set(sys.stdlib_module_names)


def test_import_sleuth_imports_nothing_else() -> None:
    assert imported("import sleuth") == ({"sleuth"}, set())


@pytest.mark.parametrize("option", ["--version", "-V", "--help"])
def test_options_without_a_command_import_only_the_command_line(option: str) -> None:
    own, packages = imported(RUN, option)
    assert own == OWN
    assert "typer" in packages <= TYPER


def test_commands_without_a_method_do_not_import_langgraph() -> None:
    names = ("search", "docs", "ingest", "sync")
    _, packages = imported(f"from sleuth.studio.cli.app import load\nfor name in {names}: load(name)")
    assert not packages & {"langgraph", "langchain_core", "langsmith", "openai"}


def test_a_question_imports_neither_chats_nor_ingestion_nor_readers_of_files() -> None:
    own, _ = imported("from sleuth.studio.cli.app import load\nload('ask')")
    unwanted = ("sleuth.tools.ingestion", "sleuth.tools.documents", "sleuth.graphs.survey", "sleuth.graphs.chat")
    assert [name for name in own if name.startswith(unwanted)] == []
