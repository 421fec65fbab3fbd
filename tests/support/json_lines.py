"""Files of JSON lines, plain or packed."""

import gzip
import json
from pathlib import Path


def write_rows(path: Path, *rows: object) -> Path:
    """Write a line per row, below folders that are made; a text is a line as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_questions(folder: Path, *rows: object) -> Path:
    """Write a file of questions."""
    return write_rows(folder / "questions.jsonl", *rows)
