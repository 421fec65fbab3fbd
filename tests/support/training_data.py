"""The training files next to the checkout, and small parts of them."""

import gzip
from pathlib import Path

DATA = Path(__file__).parents[3] / "shared" / "data"


def some_of(folder: Path, one_of: int) -> Path:
    """Copy some lines of each training file, and the whole corpus that claims refer to."""
    for file in (*DATA.glob("train/*.gz"), *DATA.glob("[2hms]*/[tdo]*.gz"), *DATA.glob("scifact/*.gz")):
        rows = gzip.decompress(file.read_bytes()).splitlines()
        copy = folder / file.relative_to(DATA)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(gzip.compress(b"\n".join(rows[:: 1 if file.name.startswith("corpus") else one_of])))
    return folder
