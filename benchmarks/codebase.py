"""Measure the code: sizes, folder entries, single-use private functions, docstring openings and word frequencies.

python -m benchmarks.codebase            # Markdown tables
python -m benchmarks.codebase --json     # the same figures as JSON
"""

import argparse
import ast
import io
import json
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("agents", "graphs", "tools", "studio", "prompts")
OTHER = ("benchmarks", "examples", "src", "training")

WORDS = {
    "said / says": r"said|says",
    "stand(s)": r"stands?",
    "told / tell(s)": r"told|tells?",
    "go(es) on": r"go(?:es)? on",
    "whoever / whatever / whichever": r"whoever|whatever|whichever",
    "beside": r"beside",
    "anew": r"anew",
    "at once": r"at once",
    "so many": r"so many",
}
QUESTION_WORDS = ("What", "How", "Where", "Whether", "Who", "Why", "When")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def tracked(*patterns: str) -> list[Path]:
    """Return the files that git tracks below these paths, without symbolic links."""
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, check=True, text=True)
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in files if file.is_file() and not file.is_symlink()]


def python_in(*folders: str) -> dict[Path, str]:
    """Return the Python sources below these folders."""
    return {file: file.read_text() for file in tracked(*folders) if file.suffix == ".py"}


def documented(source: str) -> Iterator[tuple[Documented, str]]:
    """Yield each definition that has a docstring, and the docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node, text


def comments(source: str) -> list[str]:
    """Return the comments of a source."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return [token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT]


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


def sizes() -> dict[str, dict[str, int]]:
    """Return files, lines and lines of code of each top folder."""
    rows = {}
    for folder in (*PRODUCT, *OTHER, "tests"):
        sources = python_in(folder).values()
        rows[folder] = {
            "files": len(sources),
            "lines": sum(source.count("\n") for source in sources),
            "code": sum(map(code_lines, sources)),
        }
    apart = [rows[folder] for folder in (*PRODUCT, *OTHER)]
    rows["all without tests"] = {key: sum(row[key] for row in apart) for key in ("files", "lines", "code")}
    return rows


def entries() -> dict[str, int]:
    """Return the number of entries of each package folder and of tests/integration, largest first."""
    counts: Counter[str] = Counter()
    seen: set[Path] = set()
    for file in python_in(*PRODUCT, "tests"):
        path = file.relative_to(ROOT)
        for entry in (path, *list(path.parents)[:-2]):
            if entry not in seen and entry.name != "__init__.py":
                seen.add(entry)
                counts[str(entry.parent)] += 1
    return dict(counts.most_common())


def single_use() -> tuple[int, int]:
    """Return the number of private module-level functions, and of those named exactly once outside their definition."""
    private = used = 0
    for source in python_in(*PRODUCT).values():
        tree = ast.parse(source)
        names = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("_"):
                private += 1
                used += names[node.name] == 1
    return private, used


def openings() -> tuple[int, int]:
    """Return the number of docstrings of the product and benchmarks, and of those that open with a question word."""
    texts = [text for source in python_in(*PRODUCT, *OTHER).values() for _, text in documented(source)]
    return len(texts), sum(text.split()[0].strip(".,:") in QUESTION_WORDS for text in texts)


def words() -> tuple[int, dict[str, float]]:
    """Return the words of docstrings, comments and Markdown, and the frequency per 10,000 of the listed phrases."""
    texts = [file.read_text() for file in tracked("*.md") if "prompts" not in file.parts]
    for source in python_in(*PRODUCT, *OTHER).values():
        texts += [text for _, text in documented(source)]
        texts += comments(source)
    prose = "\n".join(texts)
    total = len(re.findall(r"[A-Za-z][\w'-]*", prose))
    found = {name: len(re.findall(rf"\b(?:{pattern})\b", prose, re.IGNORECASE)) for name, pattern in WORDS.items()}
    return total, {name: round(10_000 * count / total, 1) for name, count in found.items()}


def report() -> dict[str, object]:
    """Return every figure."""
    private, used = single_use()
    docstrings, questions = openings()
    total, frequencies = words()
    return {
        "sizes": sizes(),
        "entries": entries(),
        "private functions": {"all": private, "used once": used},
        "docstrings": {"all": docstrings, "opening with a question word": questions},
        "words": {"all": total, "per 10,000": frequencies},
    }


def as_markdown(figures: dict[str, object]) -> str:
    """Return the figures as Markdown tables."""
    lines = []
    for title, rows in figures.items():
        lines += [f"## {title}", ""]
        for name, value in rows.items() if isinstance(rows, dict) else ():
            shown = ", ".join(f"{key} {each:,}" for key, each in value.items()) if isinstance(value, dict) else value
            lines.append(f"- {name}: {shown}")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    figures = report()
    sys.stdout.write((json.dumps(figures, indent=2) if options.json else as_markdown(figures)) + "\n")


if __name__ == "__main__":
    main()
