"""Count modules, lines, classes, and private functions that are used once, by folder; count the words of docs.

Then the lines of the core, those of each part beside its budget in `parts.toml`, and the core's imports of parts.

Usage: python -m benchmarks.codebase
"""

import ast
import io
import re
import subprocess
import tokenize
from collections import Counter

from benchmarks import parts
from benchmarks.parts import PRODUCT, ROOT

FOLDERS = (*PRODUCT, "training", "benchmarks", "examples", "tests")


def sources(folder: str) -> list[str]:
    """Return the Python files that git tracks below a folder."""
    listed = subprocess.run(["git", "ls-files", "-z", folder], cwd=ROOT, capture_output=True, check=True, text=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name.endswith(".py")]
    return [file.read_text() for file in files if file.is_file() and not file.is_symlink()]


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
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


def definitions(source: str) -> Counter[str]:
    """Count classes, functions, private functions, and those of them that their module names only once more."""
    found: Counter[str] = Counter()
    names = Counter(re.findall(r"\w+", source))
    for node in ast.walk(ast.parse(source)):
        found["classes"] += isinstance(node, ast.ClassDef)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_private = node.name.startswith("_") and not node.name.startswith("__")
            found["functions"] += 1
            found["private"] += is_private
            found["used once"] += is_private and names[node.name] == 2
    return found


def documentation() -> tuple[int, int]:
    """Count the pages of docs/, and their words with those of the README: whatever has a letter or a digit."""
    pages = [*(ROOT / "docs").rglob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in (*pages, ROOT / "README.md")]
    return len(pages), sum(any(map(str.isalnum, word)) for text in texts for word in text.split())


def print_parts() -> None:
    """Print the core, the parts beside their budgets, and the imports that break the boundary."""
    tables = parts.parts()
    lines: Counter[str] = Counter()
    modules: Counter[str] = Counter()
    for module, path in parts.sources().items():
        lines[parts.part_of(module)] += len(path.read_text().splitlines())
        modules[parts.part_of(module)] += 1
    print("\n| part | modules | lines | budget |\n| --- | --- | --- | --- |")
    print(f"| core | {modules['']} | {lines['']:,} | |")
    for name, table in tables.items():
        over = " over" if lines[name] > table.budget else ""
        print(f"| {name} | {modules[name]} | {lines[name]:,} | {table.budget:,}{over} |")
    broken = parts.broken_imports()
    print("\n".join([f"\nbroken imports: {len(broken)}", *broken]))


def main() -> None:
    """Print a table, and a line for the documentation."""
    columns = ("modules", "lines", "code", "classes", "functions", "private", "used once")
    print(f"| folder | {' | '.join(columns)} |\n{'| --- ' * (len(columns) + 1)}|")
    product: Counter[str] = Counter()
    for folder in FOLDERS:
        texts = sources(folder)
        found = sum(map(definitions, texts), Counter[str]())
        lines = sum(len(text.splitlines()) for text in texts)
        found |= Counter({"modules": len(texts), "lines": lines, "code": sum(map(code_lines, texts))})
        print(f"| {folder} | {' | '.join(f'{found[column]:,}' for column in columns)} |")
        product += found if folder in PRODUCT else Counter()
    print(f"| product | {' | '.join(f'{product[column]:,}' for column in columns)} |")
    print("documentation: {:,} pages, {:,} words".format(*documentation()))
    print_parts()


if __name__ == "__main__":
    main()
