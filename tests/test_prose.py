"""Plain English in docstrings, comments, messages, documentation and test names (AGENTS.md)."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = (
    *("agents", "benchmarks", "docs", "examples", "graphs", "studio", "tests", "tools", "training"),
    *("AGENTS.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"),
)
"""Folders and files that are checked."""
SENTENCES = (
    *("examples/boatyard", "examples/corpus", "examples/sources", "training/simulation"),
    *("training/roles/data", "benchmarks/growth/corpus.py", "tests"),
)
"""Files whose strings are questions, sentences or word lists: only their docstrings and comments are checked."""

BANNED = re.compile(
    r"\b(anew|beside|whoever|whomever|whichever|at once|so many|told|tells?|says?|said|stands?|"
    r"go(?:es)? on|mend(?:s|ed|ing)?|asked back|hangs? up|makes? way)\b",
    re.IGNORECASE,
)
"""Literal translations, and personifications of files, indexes and servers."""
OPENING = re.compile(r"(What|Who|Whose|Where|Whether|How|Why|When)\b")
MAX_TEST_NAME = 70


def files(*suffixes: str) -> Iterator[Path]:
    """Yield the files that are checked."""
    for folder in FOLDERS:
        path = ROOT / folder
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.suffix in suffixes and not {"node_modules", "__pycache__", "prompts"} & set(file.parts):
                yield file


def prose_of(file: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each docstring, comment, message and test name, or of each line of Markdown."""
    text = file.read_text(encoding="utf-8")
    is_data = file.relative_to(ROOT).as_posix().startswith(SENTENCES)
    if file.suffix == ".md":
        code_removed = re.sub(r"```.*?```", lambda code: "\n" * code[0].count("\n"), text, flags=re.S)
        yield from () if is_data else enumerate(code_removed.split("\n"), 1)
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.lineno, node.name.replace("_", " ")
        found = node if not is_data else node.value if isinstance(node, ast.Expr) else None
        if isinstance(found, ast.Constant) and isinstance(found.value, str) and len(found.value.split()) > 3:
            yield found.lineno, found.value


def test_prose_has_no_banned_words() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {match[0]}"
        for file in files(".py", ".md")
        if BANNED.search(file.read_text(encoding="utf-8").replace("_", " "))  # reading a file word by word is slow
        for line, text in prose_of(file)
        for match in BANNED.finditer(re.sub(r"`[^`]*`|“[^”]*”", "", text))
    ]
    assert not found, "\n".join(found)


def test_docstrings_do_not_open_with_a_question_word() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{node.lineno if hasattr(node, 'lineno') else 1}: {doc.split()[0]}"
        for file in files(".py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (doc := ast.get_docstring(node))
        and OPENING.match(doc)
    ]
    assert not found, "\n".join(found)


def test_test_names_are_short() -> None:
    found = [
        node.name
        for file in files(".py")
        if file.name.startswith("test_")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_")
        and len(node.name) > MAX_TEST_NAME
    ]
    assert not found, "\n".join(found)
