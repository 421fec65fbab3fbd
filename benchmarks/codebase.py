"""Count the files, the lines and the lines of code of each top folder: python -m benchmarks.codebase."""

import ast
import io
import subprocess
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("agents", "graphs", "tools", "studio", "prompts", "src", "training", "benchmarks", "examples", "tests")


def sources(folder: str) -> list[str]:
    """Return the Python files that git tracks below a folder."""
    listed = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, check=True, text=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name.endswith(".py")]
    return [file.read_text() for file in files if file.is_file()]


def code_lines(source: str) -> int:
    """Count the lines that hold code: no docstrings, bare strings, comments or blank lines."""
    strings = {
        line
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines: set[int] = set()
    skipped = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


if __name__ == "__main__":
    print(f"{'folder':12}{'files':>8}{'lines':>10}{'code':>10}")
    for folder in FOLDERS:
        found = sources(folder)
        lines, code = sum(source.count("\n") for source in found), sum(map(code_lines, found))
        print(f"{folder:12}{len(found):>8,}{lines:>10,}{code:>10,}")
